import { useId } from "react";

/** In place of a name that is not known. */
const unknown = "…";

/** Filters a list by one of several values; "" means all. */
export function Select<Value extends string>({
  label,
  value,
  all,
  options,
  isQuiet = false,
  onChange,
}: {
  label: string;
  value: Value | undefined;
  /** Text of the choice of all. */
  all: string;
  options: readonly { readonly value: Value; readonly name: string }[];
  /** Whether it is in a row of others, without an edge. */
  isQuiet?: boolean;
  onChange: (value: Value | undefined) => void;
}) {
  const id = useId();
  return (
    <div className={isQuiet ? "shrink-0" : "min-w-0"}>
      <label htmlFor={id} className="sr-only">
        {label}
      </label>
      <select
        id={id}
        className={isQuiet ? "select-quiet" : "field sm:max-w-56"}
        value={value ?? ""}
        onChange={({ target }) => onChange(options.find((option) => option.value === target.value)?.value)}
      >
        <option value="">{all}</option>
        {/* What it is narrowed to may be loading, or be none of them any more: then it is not all. */}
        {value !== undefined && !options.some((option) => option.value === value) && (
          <option value={value}>{unknown}</option>
        )}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.name}
          </option>
        ))}
      </select>
    </div>
  );
}
