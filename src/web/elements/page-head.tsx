import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** Link from one object to the list of all. */
export function BackLink({
  to,
  name,
}: {
  to: "/" | "/automations" | "/repositories" | "/webhooks" | "/ledger";
  name: string;
}) {
  return (
    <Link to={to} className="block w-fit text-sm text-muted hover:text-ink">
      <span aria-hidden>‹ </span>
      {name}
    </Link>
  );
}

/** Title of the page, with the status of its object beside it. */
export function PageTitle({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="flex items-start gap-x-3">
      <h1 className="min-w-0 flex-1 text-xl font-semibold wrap-anywhere">
        <bdi>{title}</bdi>
      </h1>
      <div className="flex h-7 shrink-0 items-center">{children}</div>
    </div>
  );
}
