"""Any text as LaTeX: what LaTeX would misread, or does not know, is written in commands that every LaTeX has."""

from __future__ import annotations

import unicodedata

COMMANDS = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "³": "$^3$",
    "±": "$\\pm$",
    "×": "$\\times$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "→": "$\\rightarrow$",
    "≤": "$\\leq$",
    "≥": "$\\geq$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": "\\ldots{}",
    "·": "$\\cdot$",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "`": "{`}",
    "ß": "\\ss{}",
    "æ": "\\ae{}",
    "Æ": "\\AE{}",
    "œ": "\\oe{}",
    "Œ": "\\OE{}",
    "ø": "\\o{}",
    "Ø": "\\O{}",
    "ł": "\\l{}",
    "Ł": "\\L{}",
    "ı": "\\i{}",
}

ACCENTS = {
    "\u0300": "\\`",
    "\u0301": "\\'",
    "\u0302": "\\^",
    "\u0303": "\\~",
    "\u0304": "\\=",
    "\u0306": "\\u",
    "\u0307": "\\.",
    "\u0308": '\\"',
    "\u030a": "\\r",
    "\u030b": "\\H",
    "\u030c": "\\v",
    "\u0327": "\\c",
}
"""Commands for accents above or below the letter before."""

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "ς": "varsigma", "τ": "tau", "υ": "upsilon", "φ": "varphi", "χ": "chi", "ψ": "psi", "ω": "omega",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi",
    "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
"""Names of letters that LaTeX only has in formulas; Greek capitals that look Latin are missing."""


def latex_text(text: str) -> str:
    r"""Text for a LaTeX document: plain ASCII, on one line, and read as text whatever it holds.

    A character that no command stands for is shown as its code point.

    >>> print(latex_text("π0 [50%] & more_é"))
    $\pi$0 [50\%] \& more\_\'{e}
    >>> print(latex_text("手"))
    U+624B
    """
    written: list[str] = []
    for character in unicodedata.normalize("NFD", unicodedata.normalize("NFC", " ".join(text.split()))):
        if character in ACCENTS and written:
            written[-1] = f"{ACCENTS[character]}{{{written[-1]}}}"
        elif character == "-" and written[-1:] == ["-"]:
            written.append("{}-")  # not a dash
        else:
            written.append(_latex_character(character))
    return "".join(written)


def _latex_character(character: str) -> str:
    if character in COMMANDS:
        return COMMANDS[character]
    if character in GREEK:
        return f"$\\{GREEK[character]}$"
    if " " <= character <= "~":
        return character
    return f"U+{ord(character):04X}"
