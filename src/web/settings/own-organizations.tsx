import { useMutation } from "@tanstack/react-query";
import type { OwnOrganization } from "../../domain/people/me.ts";
import { ErrorText } from "../elements/notice.tsx";
import { useMe } from "../query.ts";
import { switchOrganization } from "../switch-organization.ts";
import { useOrganizationTexts } from "../texts/organizations.ts";
import { Section } from "./section.tsx";

/** The organizations that whoever is signed in has an account in, each with the way there. */
export function OwnOrganizations() {
  const texts = useOrganizationTexts();
  const me = useMe().data;
  return (
    <Section id="organizations" title={texts.yours}>
      <p className="text-sm text-muted">{texts.yoursAbout}</p>
      <ul aria-label={texts.yours} className="divide-y divide-line">
        {me?.organizations.map((organization) => (
          <Row key={organization.id} organization={organization} isHere={organization.id === me.orgId} />
        ))}
      </ul>
    </Section>
  );
}

function Row({ organization: { id, name, role }, isHere }: { organization: OwnOrganization; isHere: boolean }) {
  const texts = useOrganizationTexts();
  const change = useMutation({ mutationFn: () => switchOrganization(id) });
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="font-medium wrap-anywhere">
          <bdi>{name}</bdi>
        </p>
        <p className="text-muted">{texts.roles[role]}</p>
        <ErrorText error={change.error} />
      </div>
      {isHere ? (
        <span className="text-muted">{texts.here}</span>
      ) : (
        <button
          type="button"
          className="button"
          disabled={change.isPending}
          aria-label={texts.switchTo(name)}
          onClick={() => change.mutate()}
        >
          {texts.switch}
        </button>
      )}
    </li>
  );
}
