"""A review sheet: one HTML file with every case beside its scene, its evidence and controls for a verdict.

It needs no server and no network. Verdicts stay in the browser and are exported as JSON, which ``ledger.add_verdicts``
reads back.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from html import escape

from ...toolkit.counting import counted
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import BaseTask, Instance
from ..cases.instances import instances_by_task
from .ledger import Verdict, reviewed_content

PICTURE_PIXELS = 480
CAMERA = "agentview"

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ConflictVLA review</title><style>
body{{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1100px;padding:1em;color:#222}}
header{{position:sticky;top:0;background:#fff;border-bottom:1px solid #ccc;padding:.5em 0}}
section{{margin:2em 0}} img{{width:{pixels}px;max-width:100%}} article{{border-top:1px solid #ddd;padding:.6em 0}}
article p{{margin:.2em 0}} .instruction{{font-size:17px}} .id,.seen{{color:#666;font-size:13px}}
input[type=text]{{width:24em}}
</style></head><body><header><label>reviewer <input id="reviewer" type="text"></label>
<label>stage <select id="stage"><option>1</option><option>2</option></select></label>
<button id="export">export verdicts</button> <span id="done"></span></header>
<h1>{count}</h1>{sections}
<script type="application/json" id="contents">{contents}</script><script>
const contents=JSON.parse(document.getElementById("contents").textContent);
const chosen=()=>[...document.querySelectorAll("article")].flatMap(a=>{{
  const v=a.querySelector("input[type=radio]:checked");
  return v?[{{case_id:a.id,stage:+document.getElementById("stage").value,verdict:v.value,
    reason:a.querySelector("input[type=text]").value,reviewer:document.getElementById("reviewer").value,
    content_sha256:contents[a.id]}}]:[]}});
document.addEventListener("change",()=>document.getElementById("done").textContent=chosen().length+" verdicts");
document.getElementById("export").onclick=()=>{{
  if(!document.getElementById("reviewer").value.trim()){{alert("Fill in who is reading.");return}}
  const link=document.createElement("a");
  link.href=URL.createObjectURL(new Blob([JSON.stringify(chosen(),null,1)],{{type:"application/json"}}));
  link.download="verdicts.json";link.click()}};
</script></body></html>
"""


def review_sheet(
    cases: Sequence[Instance],
    picture: Callable[[BaseTask], bytes | None],
    progress: Callable[[str], None] | None = None,
) -> str:
    """The sheet as HTML.

    Args:
        cases: Conflict instances, one a case.
        picture: Gives a base task's scene as PNG, or None where nothing can be rendered.
        progress: Called with each base task's id when it is done.
    """
    from ...toolkit.libero.base_tasks import base_task

    sections = []
    for (suite, name), group in instances_by_task(cases).items():
        png = picture(base_task(suite, name))
        shown = "" if png is None else f'<img alt="the scene" src="data:image/png;base64,{_base64(png)}">'
        articles = "".join(_article(case) for case in group)
        title = f"{escape(suite)}: {escape(group[0].base_instruction)}"
        sections.append(f"<section><h2>{title}</h2>{shown}{articles}</section>")
        if progress:
            progress(f"{suite}/{name}")
    contents = {str(case.case_id): reviewed_content(case.instruction, case.factors) for case in cases}
    return PAGE.format(
        pixels=PICTURE_PIXELS,
        count=counted(len(cases), "case"),
        sections="".join(sections),
        contents=json.dumps(contents).replace("</", "<\\/"),
    )


def scene_picture(task: BaseTask) -> bytes:
    """The base task's scene in its first initial state as PNG, upright.

    Raises:
        InvalidInputError: No GL library works here.
    """
    from PIL import Image

    from ...toolkit.simulation.pictures.rendering import Camera
    from ...toolkit.simulation.scene import Scene

    scene = Scene(task)
    scene.reset(0)
    camera, buffer = Camera(scene, PICTURE_PIXELS), io.BytesIO()
    Image.fromarray(camera.image(CAMERA)).save(buffer, format="PNG")
    camera.close()
    return buffer.getvalue()


def scene_picture_if_any(task: BaseTask) -> bytes | None:
    """The same, or None without a GL library: a sheet without pictures is still a sheet."""
    try:
        return scene_picture(task)
    except InvalidInputError:
        return None


def _article(case: Instance) -> str:
    evidence = "".join(
        f"<p><b>{escape(f.premise)}</b>: expected {escape(f.expected)}<br>"
        f'<span class="seen">observed: {escape(f.observed)}</span></p>'
        for f in case.factors
    )
    name = escape(str(case.case_id), quote=True)
    controls = " ".join(
        f'<label><input type="radio" name="{name}" value="{verdict}">{verdict}</label>' for verdict in Verdict
    )
    return (
        f'<article id="{name}"><p class="instruction">{escape(case.instruction)}</p>'
        f'<p class="id">{case.family} {case.level}, {escape(str(case.operator))}, {name}</p>{evidence}'
        f'<p>{controls} <input type="text" placeholder="reason"></p></article>'
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
