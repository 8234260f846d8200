from hypothesis import settings

# A deadline would fail tests on a busy machine, not on a wrong result.
settings.register_profile("regard", deadline=None)
settings.load_profile("regard")
