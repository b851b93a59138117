import { useId, useRef, type ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";

/** Something that a menu offers. */
export interface MenuItem {
  readonly name: string;
  readonly icon: IconName;
  readonly run: () => void;
}

/** A button that opens a few further actions. */
export function Menu({ label, items, children }: { label: string; items: readonly MenuItem[]; children: ReactNode }) {
  const id = useId();
  const popover = useRef<HTMLDivElement>(null);
  return (
    <>
      <button type="button" className="button" popoverTarget={id} aria-label={label}>
        {children}
      </button>
      <div
        ref={popover}
        id={id}
        popover="auto"
        className="popover m-1 min-w-56 p-1 [position-area:block-end_span-inline-start] [position-try-fallbacks:flip-inline,flip-block]"
      >
        <ul aria-label={label}>
          {items.map(({ name, icon, run }) => (
            <li key={name}>
              <button
                type="button"
                className="flex min-h-8 w-full cursor-pointer items-center gap-2.5 rounded px-2 text-start hover:bg-hover"
                onClick={() => {
                  popover.current?.hidePopover();
                  run();
                }}
              >
                <Icon name={icon} className="size-4 text-muted" />
                {name}
              </button>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}
