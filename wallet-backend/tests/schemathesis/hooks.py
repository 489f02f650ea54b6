"""What schemathesis cannot know of the wallet: that ids are used up, and which rules no schema can state."""

import itertools

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

MAX_MEMO_BYTES = 256
unused = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives three of four commands an id of their own: the few that are generated meet only their first outcome."""
    if case.meta is None or not case.meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return
    for operation in case.body.get("operations") or []:
        use_up(operation, "request_id")
    name = new_id(case)
    if name and use_up(case.body, name):
        case.headers.pop("Idempotency-Key", None)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops what is no failure: a well-formed request that is refused for a reason which no schema can state, and a
    batch in which the ill-formed operation was refused in its own place.
    """
    if isinstance(failure, RejectedPositiveData) and response.status_code == 400:
        return not unstatable(case, response.json().get("field"))
    if isinstance(failure, AcceptedNegativeData) and case.path == "/v1/batches":
        return all(result["status"] != 400 for result in response.json()["results"])
    return True


def use_up(body, name):
    number = next(unused)
    if number % 4:
        body[name] = f"fresh-{number}"
    return number % 4


def new_id(case):
    """The field of the body with the id that a command uses up, if it has one."""
    if (case.method.upper(), case.path) == ("POST", "/v1/accounts"):
        return "account_id"
    names = {parameter.name for parameter in case.operation.iter_parameters()}
    return "request_id" if "Idempotency-Key" in names and "request_id" not in names else None


def unstatable(case, field):
    body = case.body if isinstance(case.body, dict) else {}
    value = body.get(field)
    # A number without a fraction is an integer to JSON Schema, however it is written.
    if isinstance(value, float):
        return True
    match field:
        case "request_id":
            headers, path = case.headers or {}, case.path_parameters or {}
            given = (value, headers.get("Idempotency-Key"), path.get("request_id"))
            return len({id for id in given if id is not None}) != 1
        case "to":
            return value == body.get("from")
        case "memo":
            return len(value.encode()) > MAX_MEMO_BYTES
        case "debit" | "floor":
            # Against what the account has already.
            return case.method.upper() == "PATCH"
        case "after" | "cursor" | "Last-Event-ID":
            # Only what an earlier answer gave.
            return True
        case "at":
            # Times that are over, and not beside a cursor.
            return True
    return False
