"""The JAX releases that write the corpus, and what each is installed with. Imports nothing: noxfile.py reads it."""

__all__ = ["ALWAYS_INSTALLED", "RELEASES"]

# Python, and what is installed with it. JAX 0.4.30 is the oldest: the first with jax.export.
RELEASES = {
    "0.4.30": ("3.11", ("jax==0.4.30", "jaxlib==0.4.30", "numpy==1.26.4", "scipy==1.13.1", "ml_dtypes==0.5.4")),
    "0.4.38": ("3.11", ("jax==0.4.38", "jaxlib==0.4.38", "numpy==2.2.6", "scipy==1.15.3", "ml_dtypes==0.5.4")),
    "0.5.3": ("3.11", ("jax==0.5.3", "jaxlib==0.5.3", "numpy==2.2.6", "scipy==1.15.3", "ml_dtypes==0.5.4")),
    "0.6.2": ("3.11", ("jax==0.6.2", "jaxlib==0.6.2", "numpy==2.2.6", "scipy==1.15.3", "ml_dtypes==0.6.0")),
    "0.8.1": ("3.11", ("jax==0.8.1", "jaxlib==0.8.1", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.8.2": ("3.11", ("jax==0.8.2", "jaxlib==0.8.2", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.9.0": ("3.11", ("jax==0.9.0", "jaxlib==0.9.0", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.10.2": ("3.11", ("jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.12.0.1": ("3.12", ("jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.5.5", "scipy==1.18.1", "ml_dtypes==0.6.0")),
}
ALWAYS_INSTALLED = ("flatbuffers==25.12.19", "absl-py==2.3.1")  # jax.export needs them and does not say so
