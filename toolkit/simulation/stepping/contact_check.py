"""Whether two entities touch, as LIBERO's predicates ask it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import BoolArray


class ContactCheck:
    """Answers LIBERO's ``check_contact`` from MuJoCo's arrays.

    LIBERO's own looks up four names for each contact, which in a full scene takes longer than two physics substeps.

    Args:
        model: The MuJoCo model.
        data: The MuJoCo data of the present state.
    """

    def __init__(self, model: Any, data: Any) -> None:
        self._data, self._ngeom = data, model.ngeom
        self._numbers = {model.geom(number).name: number for number in range(model.ngeom)}
        self._members: dict[Any, BoolArray] = {}

    def __call__(self, geoms_1: Any, geoms_2: Any = None) -> bool:
        """Whether any geom of the first is in contact with any of the second.

        Args:
            geoms_1: A geom's name, a list of names, or one of robosuite's models, for its contact geoms.
            geoms_2: As the first; None for any geom at all.
        """
        geom_a, geom_b = self._data.contact.geom.T
        first = self._members_of(geoms_1)
        second = np.ones_like(first) if geoms_2 is None else self._members_of(geoms_2)
        return bool(np.any(first[geom_a] & second[geom_b] | first[geom_b] & second[geom_a]))

    def _members_of(self, geoms: Any) -> BoolArray:
        """Which geoms of the model are meant, shape (ngeom,)."""
        key = tuple(geoms) if isinstance(geoms, list) else geoms
        if key not in self._members:
            names = [key] if isinstance(key, str) else getattr(key, "contact_geoms", key)
            members = np.zeros(self._ngeom, np.bool_)
            members[[self._numbers[name] for name in names if name in self._numbers]] = True
            self._members[key] = members
        return self._members[key]
