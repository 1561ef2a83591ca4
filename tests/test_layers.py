"""The order of imports within each package: what a sub-package may import is a row of a table; there are no circles."""

import pytest

from .layers import circles, imports, late_imports, modules

# A sub-package or a file next to it -> what it may import, from the bottom up.
MAY_IMPORT = {
    "shapepoly": {
        "_version": "",
        "_loaded": "",
        "_polyshape": "",
        "_errors": "",
        "_jax_error": "_errors",
        "_inconclusive": "_loaded _errors _jax_error",
        "_expressions": "_errors",
        "_isl": "_expressions",
        "_decide": "_errors _isl _expressions",
        "_dimensions": "_loaded _errors _inconclusive _expressions _decide",
        "_jax": "_inconclusive _dimensions",
        "_solve": "_errors _polyshape _expressions _decide _dimensions _jax",
        "_shapes": "_errors _polyshape _expressions _dimensions",
        "_suggest": "_errors _dimensions _shapes",
    },
    "serialization": {
        "_version": "",
        "_errors": "",
        "_lazy": "",
        "_requires": "",
        "_jax": "",
        "_jaxlib": "",
        "_bytecode": "_errors",
        "_container": "_errors",
        "_record": "_errors _requires _bytecode",
        "_artifact": "_errors _bytecode _container _record",
        "_jax_values": "_errors _jax _record",
        "_program": "_errors _jax _jaxlib _bytecode _record _jax_values",
        "_export": "_errors _jax _bytecode _record _jax_values _program",
        "_call": "_errors _jax _record _jax_values _program",
        "_lift": "_errors _jax _jaxlib _bytecode _record _artifact _jax_values _program _export _call",
        "_with_jax": "_lazy _record _jax_values _program _export _call _lift",
        "_entrances": "_requires _record _with_jax",
        "_weights": "_errors _requires _container _record _artifact _with_jax",
        "interop": "_errors _lazy _requires _jax _bytecode _record _jax_values _program _export _entrances _weights",
        "_cli": "_errors _requires _container _record _artifact _program _weights",
    },
    "convert": {
        "_version": "",
        "_errors": "",
        "_jax": "",
        "_tf": "",
        "_values": "_errors _tf",
        "_function": "_errors _jax _tf _values",
        "_native": "_errors _tf _values _function",
        "_graph": "_errors _tf _values _function",
        "_convert": "_errors _jax _tf _values _function _native _graph",
        "_saved_model": "_errors _tf _values _function _convert",
        "_tflite": "_errors _tf _values _function _convert _saved_model",
        "_verify": "_errors _jax _values _native _graph _convert _tflite",
        "_as_jax2tf": "_errors _convert",
    },
    "calltf": {
        "_version": "",
        "_errors": "",
        "_jax": "",
        "_tf": "",
        "_effects": "_jax",
        "_gpus": "_tf",
        "_graph": "_tf",
        "_symbolic_values": "_jax",
        "_scope": "_jax _symbolic_values",
        "_sizes": "_jax _symbolic_values _scope",
        "_modules": "_symbolic_values",
        "_walk": "_tf",
        "_writer": "_tf _graph _walk",
        "_lists": "_graph _walk",
        "_conjugates": "_graph _writer",
        "_replaced_images": "_tf _walk",
        "_special_values": "_walk",
        "_complex_inverses": "",
        "_replacements": "_graph _walk _writer _complex_inverses _replaced_images _special_values",
        "_opened": "_tf _writer",
        "_interpreter": "_errors _jax _tf _graph _walk _symbolic_values _scope _sizes",
        "_operations": "_jax _symbolic_values _modules _interpreter",
        "_common_form": "_jax _sizes",
        "_divisions": "",
        "_guards": "_jax _symbolic_values _scope",
        "_transfer": "_errors _jax _tf _gpus",
        "_notes": "_transfer",
        "_eager": "_jax _tf _transfer",
        "_configuration": "",
        "_declared": "_errors _jax _transfer",
        "_captures": "_errors _tf _notes _declared",
        "_vectorizations": "_walk",
        "_dynamic_sizes": "_walk _vectorizations",
        "_compared": "_tf",
        "_whole_bytes": "_errors _tf",
        "_traced": "_errors _jax _tf _graph _compared _opened _transfer _notes _declared _captures _dynamic_sizes"
        " _whole_bytes",
        "_symbolic_traced": "_errors _jax _tf _symbolic_values _scope _sizes _interpreter _operations _transfer"
        " _declared _captures _traced",
        "_function": "_errors _jax _tf _graph _lists _conjugates _replacements _sizes _transfer _configuration"
        " _declared _captures _traced _symbolic_traced",
        "_lost_derivatives": "_tf _walk",
        "_observed": "_tf _walk _lost_derivatives",
        "_vjp": "_errors _tf _graph _compared _transfer _declared _traced _function _lost_derivatives _observed",
        "_vectorized": "_graph _transfer _traced _function _vectorizations _vjp",
        "_recorded": "_jax _tf _transfer _function _vjp",
        "_primitive": "_errors _jax _tf _effects _graph _transfer _captures _traced _function _recorded",
        "_lowering": "_errors _jax _effects _common_form _divisions _guards _declared _captures _traced"
        " _symbolic_traced _primitive",
        "_gradient": "_errors _jax _transfer _captures _traced _function _vectorized _recorded _primitive",
        "_batching": "_errors _jax _captures _traced _function _vectorized _recorded _primitive",
        "_loops": "_errors _jax _effects _traced _function _primitive",
        "_call": "_errors _jax _transfer _notes _eager _configuration _declared _function _primitive _lowering"
        " _gradient _batching _loops",
    },
}

# Importer -> what else it imports, in functions only: reading a record does not load what JAX does.
LATE = {
    "shapepoly": {"_dimensions": "_jax", "_shapes": "_solve"},
    "serialization": {"_record": "_artifact _jax"},
    "convert": {"_values": "_jax"},
    "calltf": {},
}


# Where a record or a dimension does by JAX what is asked of it: of these two ends, each knows the other. And what
# compares a record with its module names the record's type, as a trace that of the function it is of.
ENTRANCES = {
    "shapepoly": frozenset({("_dimensions.dimension", "_jax")}),
    "serialization": frozenset(
        {
            ("_record.exported", "_with_jax"),
            ("_record.exported", "_artifact.serialize"),
            ("_record.registration", "_jax"),
            ("_record.agreement", "_record.exported"),
        }
    ),
    "convert": frozenset(),
    "calltf": frozenset({("_traced", "_function"), ("_symbolic_traced", "_function")}),
}

# The number of import statements in functions: where a framework may be absent, or takes long to load.
MOST_LATE = {"shapepoly": 6, "serialization": 4, "convert": 8, "calltf": 0}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_sub_package_imports_only_those_below_it(package):
    allowed, late = MAY_IMPORT[package], LATE[package]
    wrong = [
        f"{found.importer}, line {found.line}: {found.imported}"
        for found in imports(package)
        for importer, imported in [found.parts]
        if importer not in ("", imported)
        and imported not in allowed[importer].split()
        and not (found.is_late and imported in late.get(importer, "").split())
        and (found.importer, found.imported) not in ENTRANCES[package]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_the_table_is_in_order_and_has_every_sub_package(package):
    below: set[str] = set()
    for part, known in MAY_IMPORT[package].items():
        assert set(known.split()) <= below, part
        below.add(part)
    assert below == {module.partition(".")[0] for module in modules(package)} - {""}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_modules_import_each_other(package):
    assert circles(package, ENTRANCES[package]) == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_few_imports_are_in_functions(package):
    assert len(late_imports(package)) <= MOST_LATE[package]
