# Written by scripts/build-clients.ts from the API's description: change that, and run it.
"""Every operation of the API, by the nouns of their paths."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Union
from urllib.parse import quote

from ._send import Send


def _part(value: str) -> str:
    return quote(value, safe="")


class _Session:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create a session."""
        return self._send("POST", "/session/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, status: Optional[Union[str, List[str]]] = None, automation_id: Optional[str] = None, repository_id: Optional[str] = None, requested_by: Optional[str] = None, label: Optional[Union[str, List[str]]] = None, archived: Optional[str] = None, attention: Optional[Union[str, List[str]]] = None, unread: Optional[str] = None) -> Dict[str, Any]:
        """List sessions, newest first."""
        return self._send("GET", "/session/list", query={"limit": limit, "cursor": cursor, "status": status, "automationId": automation_id, "repositoryId": repository_id, "requestedBy": requested_by, "label": label, "archived": archived, "attention": attention, "unread": unread})

    def search(self, *, q: str, limit: Optional[int] = None, cursor: Optional[str] = None, status: Optional[Union[str, List[str]]] = None, automation_id: Optional[str] = None, repository_id: Optional[str] = None, requested_by: Optional[str] = None, label: Optional[Union[str, List[str]]] = None, archived: Optional[str] = None, attention: Optional[Union[str, List[str]]] = None, unread: Optional[str] = None) -> Dict[str, Any]:
        """Search sessions by words."""
        return self._send("GET", "/session/search", query={"limit": limit, "cursor": cursor, "status": status, "automationId": automation_id, "repositoryId": repository_id, "requestedBy": requested_by, "label": label, "archived": archived, "attention": attention, "unread": unread, "q": q})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a session."""
        return self._send("GET", f"/session/{_part(id)}")

    def queue(self, id: str) -> Dict[str, Any]:
        """Start a draft, or retry a session that ended."""
        return self._send("POST", f"/session/{_part(id)}/queue")

    def cancel(self, id: str) -> Dict[str, Any]:
        """Cancel a session."""
        return self._send("POST", f"/session/{_part(id)}/cancel")

    def stop(self, id: str) -> Dict[str, Any]:
        """Cancel a session (the name of published clients)."""
        return self._send("POST", f"/session/{_part(id)}/stop")

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete a session that is not at work, with its events, changes, checkpoints and recording."""
        return self._send("POST", f"/session/{_part(id)}/delete")

    def message(self, id: str, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Send a follow-up message."""
        return self._send("POST", f"/session/{_part(id)}/message", body=body, idempotency_key=idempotency_key, creates=True)

    def messages(self, id: str, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Send a follow-up message (the name of published clients)."""
        return self._send("POST", f"/session/{_part(id)}/messages", body=body, idempotency_key=idempotency_key, creates=True)

    def resolve_conflicts(self, id: str, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Have the target branch merged into the work branch, and conflicts resolved."""
        return self._send("POST", f"/session/{_part(id)}/resolve-conflicts", idempotency_key=idempotency_key, creates=True)

    def budget(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set the session's budget; a session that waits for it continues."""
        return self._send("POST", f"/session/{_part(id)}/budget", body=body)

    def events(self, id: str, *, after: Optional[int] = None, limit: Optional[int] = None) -> Dict[str, Any]:
        """A page of events; with Accept: text/event-stream, all of them as they happen."""
        return self._send("GET", f"/session/{_part(id)}/events", query={"after": after, "limit": limit})

    def diff(self, id: str) -> Dict[str, Any]:
        """Show what a session changed."""
        return self._send("GET", f"/session/{_part(id)}/diff")

    def changes(self) -> bytes:
        """Sessions of the organization as they change, as Server-Sent Events."""
        return self._send("GET", "/session/changes", is_json=False)

    def labels(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set a session's labels, or add some and remove others."""
        return self._send("POST", f"/session/{_part(id)}/labels", body=body)

    def archive(self, id: str) -> Dict[str, Any]:
        """Take a session that has ended out of the usual list; new work brings it back."""
        return self._send("POST", f"/session/{_part(id)}/archive")

    def unarchive(self, id: str) -> Dict[str, Any]:
        """Bring an archived session back to the usual list."""
        return self._send("POST", f"/session/{_part(id)}/unarchive")

    def message_list(self, id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List what the session was asked, and what of it no turn has taken yet."""
        return self._send("GET", f"/session/{_part(id)}/message/list", query={"limit": limit, "cursor": cursor})

    def message_withdraw(self, id: str, message_id: str) -> Dict[str, Any]:
        """Take back a message that no turn has taken; a session that was queued for nothing else is cancelled."""
        return self._send("POST", f"/session/{_part(id)}/message/{_part(message_id)}/withdraw")

    def share_create(self, id: str, body: Mapping[str, Any] = {}, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Make a link that shows the session to whoever has it, shown only in this response."""
        return self._send("POST", f"/session/{_part(id)}/share/create", body=body, idempotency_key=idempotency_key, creates=True)

    def share_list(self, id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List the links that show the session."""
        return self._send("GET", f"/session/{_part(id)}/share/list", query={"limit": limit, "cursor": cursor})

    def share_revoke(self, id: str, share_id: str) -> Dict[str, Any]:
        """End what a link shows, at once."""
        return self._send("POST", f"/session/{_part(id)}/share/{_part(share_id)}/revoke")

    def patch(self, id: str, *, repository_id: Optional[str] = None) -> bytes:
        """Download what a session changed, for `git apply`: paths of several repositories begin with their folders."""
        return self._send("GET", f"/session/{_part(id)}/patch", query={"repositoryId": repository_id}, is_json=False)

    def transcript(self, id: str, *, format: Optional[str] = None) -> Dict[str, Any]:
        """Download what was said and done in a session."""
        return self._send("GET", f"/session/{_part(id)}/transcript", query={"format": format})

    def file_list(self, id: str, *, path: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List a folder of a session's workspace, as it was when its work was last taken out of the sandbox."""
        return self._send("GET", f"/session/{_part(id)}/file/list", query={"path": path, "limit": limit, "cursor": cursor})

    def file_read(self, id: str, *, path: Optional[str] = None, offset: Optional[int] = None, limit: Optional[int] = None) -> Dict[str, Any]:
        """Read a file of a session's workspace, as it was when its work was last taken out of the sandbox."""
        return self._send("GET", f"/session/{_part(id)}/file/read", query={"path": path, "offset": offset, "limit": limit})

    def answer_list(self, id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """What was written on forges, in Slack and in Linear because of a session, or is to be."""
        return self._send("GET", f"/session/{_part(id)}/answer/list", query={"limit": limit, "cursor": cursor})

    def unread(self) -> Dict[str, Any]:
        """Count your sessions that are over and that you have not looked at, up to a hundred."""
        return self._send("GET", "/session/unread")

    def read(self, id: str) -> Dict[str, Any]:
        """Mark a session as looked at by you."""
        return self._send("POST", f"/session/{_part(id)}/read")

    def read_all(self) -> Dict[str, Any]:
        """Mark everything that is over as looked at by you."""
        return self._send("POST", "/session/read-all")


class _Label:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, prefix: Optional[str] = None) -> Dict[str, Any]:
        """List the labels that sessions have, in the order of their letters."""
        return self._send("GET", "/label/list", query={"limit": limit, "cursor": cursor, "prefix": prefix})


class _Share:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List the links that show any session of the organization, with its title."""
        return self._send("GET", "/share/list", query={"limit": limit, "cursor": cursor})


class _Automation:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create an automation."""
        return self._send("POST", "/automation/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List automations."""
        return self._send("GET", "/automation/list", query={"limit": limit, "cursor": cursor})

    def get(self, key_or_id: str) -> Dict[str, Any]:
        """Show an automation."""
        return self._send("GET", f"/automation/{_part(key_or_id)}")

    def update(self, key_or_id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change an automation."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/update", body=body)

    def delete(self, key_or_id: str) -> Dict[str, Any]:
        """Delete an automation."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/delete")

    def preview(self, key_or_id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Render the instructions with a sample event, without running anything."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/preview", body=body)

    def runs(self, key_or_id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List the jobs of an automation."""
        return self._send("GET", f"/automation/{_part(key_or_id)}/runs", query={"limit": limit, "cursor": cursor})

    def preview_draft(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Render a draft or a saved automation with an event and evaluate its triggers, without running anything."""
        return self._send("POST", "/automation/preview", body=body)

    def template_list(self) -> Dict[str, Any]:
        """List automations to start from."""
        return self._send("GET", "/automation/template/list")

    def state(self, key_or_id: str) -> Dict[str, Any]:
        """Show what an automation's runs remember."""
        return self._send("GET", f"/automation/{_part(key_or_id)}/state")

    def state_update(self, key_or_id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change what an automation's runs remember."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/state/update", body=body)

    def trigger(self, key_or_id: str, body: Mapping[str, Any] = {}, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Trigger an automation; the body is its event."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/trigger", body=body, idempotency_key=idempotency_key, creates=True)

    def trigger_rotate(self, key_or_id: str, id: str, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Replace a trigger's secret, or the address of a webhook that has none; the old secret counts for a day."""
        return self._send("POST", f"/automation/{_part(key_or_id)}/trigger/{_part(id)}/rotate", idempotency_key=idempotency_key, creates=True)


class _Agent:
    def __init__(self, send: Send) -> None:
        self._send = send

    def trigger(self, key_or_id: str, body: Mapping[str, Any] = {}, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Trigger an automation; the body is its event."""
        return self._send("POST", f"/agent/{_part(key_or_id)}/trigger", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self) -> Dict[str, Any]:
        """List agents, whether each is available, and what it lacks."""
        return self._send("GET", "/agent/list")


class _Hook:
    def __init__(self, send: Send) -> None:
        self._send = send

    def deliver(self, trigger_id: str, *, access_token: Optional[str] = None) -> Dict[str, Any]:
        """Deliver an event to a trigger of type webhook or source."""
        return self._send("POST", f"/hook/{_part(trigger_id)}", query={"access_token": access_token})

    def forge(self, connection_id: str) -> Dict[str, Any]:
        """Deliver an event of a forge to all triggers that listen to its connection."""
        return self._send("POST", f"/hook/forge/{_part(connection_id)}")


class _Job:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List jobs."""
        return self._send("GET", "/job/list", query={"limit": limit, "cursor": cursor})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a job, with the session that it started or its error."""
        return self._send("GET", f"/job/{_part(id)}")

    def cancel(self, id: str) -> Dict[str, Any]:
        """Cancel a run: its job, or all of its sessions that have not ended."""
        return self._send("POST", f"/job/{_part(id)}/cancel")


class _Ledger:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, automation_id: Optional[str] = None, outcome: Optional[str] = None) -> Dict[str, Any]:
        """List triggers and their outcomes."""
        return self._send("GET", "/ledger/list", query={"limit": limit, "cursor": cursor, "automationId": automation_id, "outcome": outcome})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a trigger and its outcome."""
        return self._send("GET", f"/ledger/{_part(id)}")

    def replay(self, id: str, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Do again what the entry is about: trigger its automation, or have all triggers that listen decide on its event."""
        return self._send("POST", f"/ledger/{_part(id)}/replay", idempotency_key=idempotency_key, creates=True)


class _Repository:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Connect a repository."""
        return self._send("POST", "/repository/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List repositories."""
        return self._send("GET", "/repository/list", query={"limit": limit, "cursor": cursor})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a repository."""
        return self._send("GET", f"/repository/{_part(id)}")

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change a repository."""
        return self._send("POST", f"/repository/{_part(id)}/update", body=body)

    def delete(self, id: str) -> Dict[str, Any]:
        """Disconnect a repository: its secrets and the automations of its files are deleted, its other settings are there when it is connected again."""
        return self._send("POST", f"/repository/{_part(id)}/delete")

    def search(self, *, q: Optional[str] = None) -> Dict[str, Any]:
        """Search the repositories that the organization's forges show, connected or not."""
        return self._send("GET", "/repository/search", query={"q": q})

    def branches(self, *, url: str, q: Optional[str] = None) -> Dict[str, Any]:
        """Search the branches of a repository, connected or not."""
        return self._send("GET", "/repository/branches", query={"url": url, "q": q})

    def files(self, *, url: str, branch: str, q: Optional[str] = None) -> Dict[str, Any]:
        """Search the files of a repository at a branch, connected or not."""
        return self._send("GET", "/repository/files", query={"url": url, "branch": branch, "q": q})

    def try_setup(self, id: str, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Run a repository's setup in a sandbox, as a session without an agent that costs nothing."""
        return self._send("POST", f"/repository/{_part(id)}/try-setup", body=body, idempotency_key=idempotency_key, creates=True)

    def automation_files(self, id: str) -> Dict[str, Any]:
        """Show whether a repository's automations are read from its files, and what came of each."""
        return self._send("GET", f"/repository/{_part(id)}/automation-files")

    def set_automation_files(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Read a repository's automations from its files, or no longer, which deletes them."""
        return self._send("POST", f"/repository/{_part(id)}/automation-files", body=body)

    def egress(self, id: str) -> Dict[str, Any]:
        """Show which hosts a repository's sandboxes may reach."""
        return self._send("GET", f"/repository/{_part(id)}/egress")

    def set_egress(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set which hosts a repository's sandboxes may reach."""
        return self._send("POST", f"/repository/{_part(id)}/egress", body=body)

    def allow(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Let a repository's sandboxes reach one more host."""
        return self._send("POST", f"/repository/{_part(id)}/allow", body=body)

    def environment(self, id: str) -> Dict[str, Any]:
        """Show a repository's setup script, variables and sparse checkout."""
        return self._send("GET", f"/repository/{_part(id)}/environment")

    def update_environment(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set a repository's setup script, variables and sparse checkout."""
        return self._send("POST", f"/repository/{_part(id)}/environment", body=body)

    def limits(self, id: str) -> Dict[str, Any]:
        """Show a repository's limits."""
        return self._send("GET", f"/repository/{_part(id)}/limits")

    def set_limits(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set how many sessions may run on a repository at once."""
        return self._send("POST", f"/repository/{_part(id)}/limits", body=body)

    def findings(self, id: str) -> Dict[str, Any]:
        """Show what may be pushed although it looks like a secret."""
        return self._send("GET", f"/repository/{_part(id)}/findings")

    def set_allowed_findings(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Set what may be pushed although it looks like a secret."""
        return self._send("POST", f"/repository/{_part(id)}/findings", body=body)

    def allow_finding(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Let one more finding pass, by its path, rule or fingerprint."""
        return self._send("POST", f"/repository/{_part(id)}/allow-finding", body=body)


class _Organization:
    def __init__(self, send: Send) -> None:
        self._send = send

    def get(self) -> Dict[str, Any]:
        """Show the organization, its settings and this month's costs."""
        return self._send("GET", "/organization")

    def update(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change the organization's settings."""
        return self._send("POST", "/organization/update", body=body)

    def export(self) -> bytes:
        """All data of the organization as one tar archive, without any secret."""
        return self._send("GET", "/organization/export", is_json=False)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List all organizations of the server, for its own admins."""
        return self._send("GET", "/organization/list", query={"limit": limit, "cursor": cursor})

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create an organization, with a first admin who is invited, or an admin key; for admins of the server."""
        return self._send("POST", "/organization/create", body=body, idempotency_key=idempotency_key, creates=True)

    def update_other_organization(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Say whether an organization uses the server's own access to forges; for admins of the server."""
        return self._send("POST", f"/organization/{_part(id)}/update", body=body)

    def erase(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Erase another organization with all that there is of it, which can't be undone; for admins of the server."""
        return self._send("POST", f"/organization/{_part(id)}/erase", body=body)

    def erase_organization(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Erase the organization with all that there is of it, which can't be undone."""
        return self._send("POST", "/organization/erase", body=body)


class _Secret:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create a secret."""
        return self._send("POST", "/secret/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, repository_id: Optional[str] = None) -> Dict[str, Any]:
        """List secrets, without their values."""
        return self._send("GET", "/secret/list", query={"limit": limit, "cursor": cursor, "repositoryId": repository_id})

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change a secret."""
        return self._send("POST", f"/secret/{_part(id)}/update", body=body)

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete a secret."""
        return self._send("POST", f"/secret/{_part(id)}/delete")


class _Registry:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Add a private package registry."""
        return self._send("POST", "/registry/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List private package registries, without their tokens."""
        return self._send("GET", "/registry/list", query={"limit": limit, "cursor": cursor})

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Replace a registry's token."""
        return self._send("POST", f"/registry/{_part(id)}/update", body=body)

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete a registry with its token."""
        return self._send("POST", f"/registry/{_part(id)}/delete")


class _Connection:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Connect a forge: its credential is checked first; the webhook's secret is shown only in this response."""
        return self._send("POST", "/connection/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List connections with their health, without credentials."""
        return self._send("GET", "/connection/list", query={"limit": limit, "cursor": cursor})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a connection."""
        return self._send("GET", f"/connection/{_part(id)}")

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Rename a connection, say who calls Offstage there, or replace its credential, which is checked first."""
        return self._send("POST", f"/connection/{_part(id)}/update", body=body)

    def check(self, id: str) -> Dict[str, Any]:
        """Check a connection's credential now."""
        return self._send("POST", f"/connection/{_part(id)}/check")

    def rotate_secret(self, id: str, body: Mapping[str, Any] = {}, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Replace the webhook's secret, by one of the forge's or a new one, shown only in this response; the one before is accepted for another day."""
        return self._send("POST", f"/connection/{_part(id)}/rotate-secret", body=body, idempotency_key=idempotency_key, creates=True)

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete a connection with its credential: repositories at its address are used with the operator's configuration, if there is one."""
        return self._send("POST", f"/connection/{_part(id)}/delete")

    def github_app_start(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Begin to register a GitHub App, which a person confirms in the same browser."""
        return self._send("POST", "/connection/github-app/start", body=body)


class _Account:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Connect your own account at a forge: its token is checked first."""
        return self._send("POST", "/account/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List your own accounts at forges with their health, without their tokens."""
        return self._send("GET", "/account/list", query={"limit": limit, "cursor": cursor})

    def get(self, id: str) -> Dict[str, Any]:
        """Show an account of yours."""
        return self._send("GET", f"/account/{_part(id)}")

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Replace the token of an account of yours, which is checked first."""
        return self._send("POST", f"/account/{_part(id)}/update", body=body)

    def check(self, id: str) -> Dict[str, Any]:
        """Check an account of yours now: if its token is good, it is tried again where it was refused."""
        return self._send("POST", f"/account/{_part(id)}/check")

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete an account of yours with its token."""
        return self._send("POST", f"/account/{_part(id)}/delete")


class _Insight:
    def __init__(self, send: Send) -> None:
        self._send = send

    def figures(self, *, from_: Optional[str] = None, to: Optional[str] = None, by: Optional[str] = None, group_by: Optional[str] = None, key: Optional[str] = None, repository_id: Optional[str] = None) -> Dict[str, Any]:
        """Figures of a time: outcomes, pull requests and their merges, waits, tokens and cost."""
        return self._send("GET", "/insight/figures", query={"from": from_, "to": to, "by": by, "groupBy": group_by, "key": key, "repositoryId": repository_id})

    def csv(self, *, from_: Optional[str] = None, to: Optional[str] = None, by: Optional[str] = None, group_by: Optional[str] = None, key: Optional[str] = None, repository_id: Optional[str] = None) -> bytes:
        """The same figures as CSV (RFC 4180): a row for each period, or for each period and group."""
        return self._send("GET", "/insight/csv", query={"from": from_, "to": to, "by": by, "groupBy": group_by, "key": key, "repositoryId": repository_id}, is_json=False)


class _Notice:
    def __init__(self, send: Send) -> None:
        self._send = send

    def settings(self) -> Dict[str, Any]:
        """Show what you are told of, and by which channel."""
        return self._send("GET", "/notice/settings")

    def settings_update(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Choose what you are told of, and by which channel."""
        return self._send("POST", "/notice/settings/update", body=body)

    def test(self) -> Dict[str, Any]:
        """Have a notice sent to yourself by each channel."""
        return self._send("POST", "/notice/test")

    def unsubscribe(self, *, token: str) -> Dict[str, Any]:
        """End mails of one kind, by the link that such a mail has (RFC 8058)."""
        return self._send("POST", "/notice/unsubscribe", query={"token": token})


class _Subscription:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Have notices pushed to this browser."""
        return self._send("POST", "/subscription/create", body=body, idempotency_key=idempotency_key, creates=True)

    def renew(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Have notices pushed to the new address of a browser that was subscribed with a renewalSecret."""
        return self._send("POST", "/subscription/renew", body=body)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List your browsers that take notices."""
        return self._send("GET", "/subscription/list", query={"limit": limit, "cursor": cursor})

    def delete(self, id: str) -> Dict[str, Any]:
        """Have nothing more pushed to a browser of yours."""
        return self._send("POST", f"/subscription/{_part(id)}/delete")


class _Key:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create an API key, shown only in this response."""
        return self._send("POST", "/key/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List API keys, by their prefix."""
        return self._send("GET", "/key/list", query={"limit": limit, "cursor": cursor})

    def revoke(self, id: str) -> Dict[str, Any]:
        """Revoke an API key at once."""
        return self._send("POST", f"/key/{_part(id)}/revoke")


class _Login:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Sign a browser in with a one-time link or a key."""
        return self._send("POST", "/login/create", body=body)

    def delete(self) -> Dict[str, Any]:
        """Sign the browser out."""
        return self._send("POST", "/login/delete")

    def switch(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Sign this browser in to another organization in which the same person of the identity provider has an account."""
        return self._send("POST", "/login/switch", body=body)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List browsers that are signed in: your own, as an admin all."""
        return self._send("GET", "/login/list", query={"limit": limit, "cursor": cursor})

    def revoke(self, id: str) -> Dict[str, Any]:
        """Sign a browser out."""
        return self._send("POST", f"/login/{_part(id)}/revoke")

    def methods(self) -> Dict[str, Any]:
        """List the ways to sign in."""
        return self._send("GET", "/login/methods")


class _Oauth:
    def __init__(self, send: Send) -> None:
        self._send = send

    def request(self, id: str) -> Dict[str, Any]:
        """What a program asks the signed-in person for."""
        return self._send("GET", f"/oauth/request/{_part(id)}")

    def request_decide(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Let a program act for the signed-in person, or refuse; the browser goes on at redirectUrl."""
        return self._send("POST", f"/oauth/request/{_part(id)}/decide", body=body)


class _Grant:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List programs that were let act for people: for you, as an admin for all."""
        return self._send("GET", "/grant/list", query={"limit": limit, "cursor": cursor})

    def revoke(self, id: str) -> Dict[str, Any]:
        """End what a program may do: its tokens are refused from then on."""
        return self._send("POST", f"/grant/{_part(id)}/revoke")


class _User:
    def __init__(self, send: Send) -> None:
        self._send = send

    def invite(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Invite a person, by a link that signs them in, and that nothing has but this response and the mail."""
        return self._send("POST", "/user/invite", body=body, idempotency_key=idempotency_key, creates=True)

    def invite_user_again(self, id: str, body: Mapping[str, Any] = {}, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Make another link for a person who was invited, and end those before."""
        return self._send("POST", f"/user/{_part(id)}/invite", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List users."""
        return self._send("GET", "/user/list", query={"limit": limit, "cursor": cursor})

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change a user's role, or disable them."""
        return self._send("POST", f"/user/{_part(id)}/update", body=body)

    def erase(self, id: str) -> Dict[str, Any]:
        """Erase who a user is, sign them out and revoke their keys."""
        return self._send("POST", f"/user/{_part(id)}/erase")


class _Audit:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, action: Optional[str] = None, outcome: Optional[str] = None) -> Dict[str, Any]:
        """Who changed what, from where, and what was refused."""
        return self._send("GET", "/audit/list", query={"limit": limit, "cursor": cursor, "action": action, "outcome": outcome})


class _Webhook:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create a webhook; its secret is shown only in this response."""
        return self._send("POST", "/webhook/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Dict[str, Any]:
        """List webhooks."""
        return self._send("GET", "/webhook/list", query={"limit": limit, "cursor": cursor})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a webhook."""
        return self._send("GET", f"/webhook/{_part(id)}")

    def update(self, id: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Change, enable or disable a webhook."""
        return self._send("POST", f"/webhook/{_part(id)}/update", body=body)

    def rotate(self, id: str, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Make a new secret, shown only in this response."""
        return self._send("POST", f"/webhook/{_part(id)}/rotate", idempotency_key=idempotency_key, creates=True)

    def delete(self, id: str) -> Dict[str, Any]:
        """Delete a webhook."""
        return self._send("POST", f"/webhook/{_part(id)}/delete")

    def test(self, id: str, *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Send a test event."""
        return self._send("POST", f"/webhook/{_part(id)}/test", idempotency_key=idempotency_key, creates=True)


class _Delivery:
    def __init__(self, send: Send) -> None:
        self._send = send

    def list(self, *, limit: Optional[int] = None, cursor: Optional[str] = None, webhook_id: Optional[str] = None, status: Optional[str] = None) -> Dict[str, Any]:
        """List deliveries."""
        return self._send("GET", "/delivery/list", query={"limit": limit, "cursor": cursor, "webhookId": webhook_id, "status": status})

    def get(self, id: str) -> Dict[str, Any]:
        """Show a delivery, with each attempt and its answer."""
        return self._send("GET", f"/delivery/{_part(id)}")

    def resend(self, id: str) -> Dict[str, Any]:
        """Send a delivery again."""
        return self._send("POST", f"/delivery/{_part(id)}/resend")


class _Me:
    def __init__(self, send: Send) -> None:
        self._send = send

    def get(self) -> Dict[str, Any]:
        """Show whose key this is."""
        return self._send("GET", "/me")


class _System:
    def __init__(self, send: Send) -> None:
        self._send = send

    def health(self) -> Dict[str, Any]:
        """How the server is: workers, queue, database, disk, versions, and what is wrong with them."""
        return self._send("GET", "/system/health")


class _Task:
    def __init__(self, send: Send) -> None:
        self._send = send

    def create(self, body: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Dict[str, Any]:
        """Create a session (the older name)."""
        return self._send("POST", "/task/create", body=body, idempotency_key=idempotency_key, creates=True)

    def list(self, *, limit: Optional[int] = None, page: Optional[int] = None) -> Dict[str, Any]:
        """List sessions (the older name)."""
        return self._send("GET", "/task/list", query={"limit": limit, "page": page})

    def search(self, *, q: str, limit: Optional[int] = None, page: Optional[int] = None) -> Dict[str, Any]:
        """Search sessions (the older name)."""
        return self._send("GET", "/task/search", query={"limit": limit, "page": page, "q": q})


class Operations:
    """The operations, by noun."""

    def __init__(self, send: Send) -> None:
        self.session = _Session(send)
        self.label = _Label(send)
        self.share = _Share(send)
        self.automation = _Automation(send)
        self.agent = _Agent(send)
        self.hook = _Hook(send)
        self.job = _Job(send)
        self.ledger = _Ledger(send)
        self.repository = _Repository(send)
        self.organization = _Organization(send)
        self.secret = _Secret(send)
        self.registry = _Registry(send)
        self.connection = _Connection(send)
        self.account = _Account(send)
        self.insight = _Insight(send)
        self.notice = _Notice(send)
        self.subscription = _Subscription(send)
        self.key = _Key(send)
        self.login = _Login(send)
        self.oauth = _Oauth(send)
        self.grant = _Grant(send)
        self.user = _User(send)
        self.audit = _Audit(send)
        self.webhook = _Webhook(send)
        self.delivery = _Delivery(send)
        self.me = _Me(send)
        self.system = _System(send)
        self.task = _Task(send)
