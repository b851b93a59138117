import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Organization } from "../../domain/people/organization.ts";
import { ErrorText } from "../elements/notice.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client, useMe } from "../query.ts";
import { Accounts } from "../settings/accounts.tsx";
import { Connections } from "../settings/connections.tsx";
import { Keys } from "../settings/keys.tsx";
import { Notices } from "../settings/notices.tsx";
import { OrganizationData } from "../settings/organization-data.tsx";
import { OrganizationForm } from "../settings/organization-form.tsx";
import { OwnOrganizations } from "../settings/own-organizations.tsx";
import { Programs } from "../settings/programs.tsx";
import { Registries } from "../settings/registries.tsx";
import { Secrets } from "../settings/secrets.tsx";
import { SectionLinks } from "../settings/section-links.tsx";
import { ShareLinks } from "../settings/share-links.tsx";
import { SignIns } from "../settings/sign-ins.tsx";
import { useSectionInView } from "../settings/use-section-in-view.ts";
import { useSettingsSections, type SettingsSection } from "../shell/settings-sections.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/**
 * Settings that admins make for all sessions, and what belongs to the organization: connections, secrets, keys, links,
 * sign-ins, its data; and the accounts, notices and sign-ins of the user, who sees nothing else unless they are an
 * admin.
 */
export function SettingsPage() {
  const texts = useSettingsTexts();
  const { tryAgain } = useElementTexts();
  const organization = useQuery({ queryKey: ["organization"], queryFn: () => client.organization.get() });
  const me = useMe();
  useTitle(texts.title);
  const failed = [organization, me].find(({ data, error }) => data === undefined && error !== null);
  return (
    <div className="space-y-6">
      <h1 className="text-xl font-semibold">{texts.title}</h1>
      {failed !== undefined && (
        <>
          <ErrorText error={failed.error} />
          <button type="button" className="button" onClick={() => void failed.refetch()}>
            {tryAgain}
          </button>
        </>
      )}
      {organization.data !== undefined && me.data !== undefined ? (
        <Sections organization={organization.data} />
      ) : (
        failed === undefined && <p className="text-muted">{texts.loading}</p>
      )}
    </div>
  );
}

function Sections({ organization }: { organization: Organization }) {
  const sections = useSettingsSections();
  const { current, open, content } = useSectionInView(sections.map(({ id }) => id));
  const contents: Readonly<Record<SettingsSection, ReactNode>> = {
    sessions: <OrganizationForm organization={organization} />,
    accounts: <Accounts />,
    notices: <Notices />,
    connections: <Connections />,
    secrets: <Secrets />,
    registries: <Registries />,
    keys: <Keys />,
    shares: <ShareLinks />,
    "sign-ins": <SignIns />,
    programs: <Programs />,
    organizations: <OwnOrganizations />,
    data: <OrganizationData name={organization.name} />,
  };
  return (
    <div className="lg:grid lg:grid-cols-[11rem_minmax(0,1fr)] lg:items-start lg:gap-6">
      <SectionLinks sections={sections} current={current} onOpen={open} />
      <div ref={content} className="mt-6 space-y-6 lg:mt-0">
        {sections.map(({ id }) => (
          <div key={id}>{contents[id]}</div>
        ))}
      </div>
    </div>
  );
}
