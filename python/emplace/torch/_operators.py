"""What PyTorch says of its operators."""


def operator_name(target):
    """"convolution" of aten.convolution.default."""
    schema = getattr(target, "_schema", None)
    name = schema.name if schema is not None else getattr(target, "__name__", str(target))
    return name.split("::")[-1]


def is_view(target):
    """Whether every result shows (a part of) the first argument."""
    schema = getattr(target, "_schema", None)
    if schema is None or not schema.returns:
        return False
    if operator_name(target) == "_unsafe_view":
        return True
    aliases = [value.alias_info for value in schema.returns]
    return all(alias is not None and not alias.is_write for alias in aliases)
