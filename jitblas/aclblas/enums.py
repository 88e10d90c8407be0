"""Enumerations of the C interface, with the values of its header."""

from __future__ import annotations

from enum import IntEnum


class DataType(IntEnum):
    """aclDataType values that the operators know."""

    ACL_FLOAT = 0
    ACL_FLOAT16 = 1
    ACL_DOUBLE = 11
    ACL_COMPLEX64 = 16
    ACL_COMPLEX128 = 17
    ACL_BF16 = 27


class Operation(IntEnum):
    """aclblasOperation_t."""

    OP_N = 111
    OP_T = 112
    OP_C = 113


class Fill(IntEnum):
    """aclblasFillMode_t."""

    UPPER = 121
    LOWER = 122


ACL_FLOAT, ACL_FLOAT16, ACL_BF16 = DataType.ACL_FLOAT, DataType.ACL_FLOAT16, DataType.ACL_BF16
ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128 = DataType.ACL_DOUBLE, DataType.ACL_COMPLEX64, DataType.ACL_COMPLEX128
OP_N, OP_T, OP_C = Operation.OP_N, Operation.OP_T, Operation.OP_C
UPPER, LOWER = Fill.UPPER, Fill.LOWER
