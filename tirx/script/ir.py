# SPDX-License-Identifier: Apache-2.0
"""The namespace I: modules."""

from tirx.script.control import meta_var
from tirx.script.module import IRModule, ir_module

__all__ = ["IRModule", "ir_module", "meta_var"]
