import { Icon, type IconName } from "../elements/icon.tsx";

/** A button of the rail. On a phone it closes the rail first. */
export function RailButton({
  icon,
  word,
  keys,
  onClick,
}: {
  icon: IconName;
  word: string;
  keys?: string;
  onClick: () => void;
}) {
  return (
    <button
      type="button"
      className="rail-item"
      onClick={(event) => {
        const rail = event.currentTarget.closest<HTMLElement>(":popover-open");
        rail?.hidePopover();
        onClick();
      }}
    >
      <Icon name={icon} />
      <span className="rail-word">{word}</span>
      {keys !== undefined && (
        <kbd aria-hidden className="key ms-auto max-[72rem]:hidden">
          {keys}
        </kbd>
      )}
    </button>
  );
}
