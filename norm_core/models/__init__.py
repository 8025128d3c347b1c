"""The models that can be asked: what each is, where its weights come from, and whether they are what they should be."""
