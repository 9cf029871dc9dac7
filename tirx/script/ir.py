# SPDX-License-Identifier: Apache-2.0
"""The namespace I: modules."""

from tirx.script.control import meta_var
from tirx.script.module import (
    IRModule,
    decl_function,
    ir_module,
    module_attrs,
    module_get_attr,
    module_global_infos,
    module_set_attr,
    pyfunc,
)

__all__ = [
    "IRModule",
    "decl_function",
    "ir_module",
    "meta_var",
    "module_attrs",
    "module_get_attr",
    "module_global_infos",
    "module_set_attr",
    "pyfunc",
]
