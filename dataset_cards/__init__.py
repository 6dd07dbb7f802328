"""Card templates and the released data sets that the package carries."""
