"""ConflictVLA: what does a vision-language-action model do when its task makes no sense?"""
