"""The language probes' lexicon, made from WordNet."""
