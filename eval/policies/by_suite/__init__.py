"""A policy that is one checkpoint a suite, as OpenVLA and GR00T publish theirs: one policy, loaded suite by suite."""
