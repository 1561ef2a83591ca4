"""Graph mode: a StableHLO module as TensorFlow operations. Parse (`parse`), look up (`registry`), emit (`emit`)."""
