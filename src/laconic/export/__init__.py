"""Models that leave Python."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "Scorecard": "scorecard",
        "load": "model_file",
        "model_card": "card",
        "register_onnx_converters": "onnx_graph",
        "save": "model_file",
        "to_onnx": "onnx_graph",
        "to_scorecard": "scorecard",
        "to_sql": "sql",
        "trusted_types": "trusted",
    },
)
