"""LIBERO: the installed package, its base tasks and suites in folders."""
