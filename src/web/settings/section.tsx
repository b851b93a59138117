import type { ReactNode } from "react";

/**
 * A section of the settings, with a heading that an address leads to.
 * @param id what follows the # of its address, as `shell/settings-sections.ts` names it
 * @param action shown beside the heading
 */
export function Section({
  id,
  title,
  action,
  children,
}: {
  id: string;
  title: string;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section aria-labelledby={id} className="card space-y-4 p-4">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id={id} tabIndex={-1} className="me-auto scroll-mt-4 font-medium">
          {title}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}
