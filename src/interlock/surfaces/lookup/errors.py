"""The errors of the lookup document: JSON-RPC codes, each with data that names the thing it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.surfaces.call import RpcError

if TYPE_CHECKING:
    from interlock.authoring.diagnostics.diagnostic import Diagnostic

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
WORKFLOW_NOT_FOUND = -32001
INVALID_WORKFLOW = -32002
STEP_NOT_FOUND = -32003
INVALID_CRITERIA = -32004
INVALID_STATE = -32005
STORAGE_ERROR = -32006
SECURITY_ERROR = -32007

_BY_DIAGNOSTIC = {
    "IL001": (STORAGE_ERROR, "Storage error"),
    "IL009": (SECURITY_ERROR, "Security check failed"),
}


def method_not_found(name: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, "Method not found", {"method": name})


def invalid_params(details: str) -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid params", {"details": details})


def cannot_load(workflow_id: str, diagnostic: Diagnostic) -> RpcError:
    """Say why a workflow cannot be loaded: there is none, or its file has errors."""
    from interlock.authoring.diagnostics.diagnostic import ABSENT

    if diagnostic.code == ABSENT:
        return RpcError(WORKFLOW_NOT_FOUND, "Workflow not found", {"workflowId": workflow_id})
    code, message = _BY_DIAGNOSTIC.get(diagnostic.code, (INVALID_WORKFLOW, "Invalid workflow"))
    details = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}: {diagnostic.message}"
    return RpcError(code, message, {"workflowId": workflow_id, "details": details})


def step_not_found(step_id: str) -> RpcError:
    return RpcError(STEP_NOT_FOUND, "Step not found", {"stepId": step_id})


def invalid_criteria(step_id: str, details: str) -> RpcError:
    return RpcError(INVALID_CRITERIA, "Invalid validation criteria", {"stepId": step_id, "details": details})


def invalid_state(workflow_id: str, details: str) -> RpcError:
    return RpcError(INVALID_STATE, "Invalid state", {"workflowId": workflow_id, "details": details})


def storage_error(error: OSError) -> RpcError:
    """Answer for a file that cannot be read, without its path."""
    details = error.strerror or type(error).__name__
    return RpcError(STORAGE_ERROR, "Storage error", {"details": details})


def internal_error(error: Exception, reference: str) -> RpcError:
    """Answer for a bug; the reference leads to the traceback on the server's stderr."""
    details = f"{type(error).__name__}. Reference {reference} on the server's stderr."
    return RpcError(INTERNAL_ERROR, "Internal error", {"details": details})
