import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Share } from "../../../domain/sessions/share.ts";
import { useShareTexts } from "../../texts/shares.ts";
import { ConfirmButton } from "../dialog.tsx";
import { ErrorText } from "../notice.tsx";
import { Ago, Day, useNow } from "../time.tsx";

/** A share link of a session: its maker, its expiry, and a button that revokes it. */
export function ShareRow({
  share: { createdAt, createdBy, expiresAt, revokedAt, lastUsedAt },
  children,
  revoke: end,
}: {
  readonly share: Share;
  /** Which session it shows, if that is not known. */
  readonly children?: ReactNode;
  readonly revoke: () => Promise<void>;
}) {
  const texts = useShareTexts();
  const isExpired = Date.parse(expiresAt) <= useNow(30_000);
  const revoke = useMutation({ mutationFn: end });
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        {children}
        <p>
          {texts.made} <Ago at={createdAt} />
          {createdBy !== null && (
            <>
              {" "}
              {texts.by} <bdi>{createdBy.name}</bdi>
            </>
          )}
        </p>
        <p className="text-muted">
          {revokedAt !== null ? (
            texts.revoked
          ) : (
            <>
              {isExpired ? texts.expired : texts.ends} <Day at={expiresAt} />
            </>
          )}
          {" · "}
          {lastUsedAt === null ? (
            texts.unused
          ) : (
            <>
              {texts.used} <Ago at={lastUsedAt} />
            </>
          )}
        </p>
        <ErrorText error={revoke.error} />
      </div>
      {revokedAt === null && !isExpired && (
        <ConfirmButton
          button={texts.revoke}
          disabled={revoke.isPending}
          question={texts.revokeQuestion}
          onConfirm={() => revoke.mutate()}
        >
          {texts.revokeText}
        </ConfirmButton>
      )}
    </li>
  );
}
