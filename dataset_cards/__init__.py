"""Card templates and the released datasets that the package carries."""
