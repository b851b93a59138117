const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });
const small = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

/** Formats US dollars: `$1,234.50`; below a cent, the first significant digits. */
export function formatDollars(amount: number): string {
  return amount > 0 && amount < 0.01 ? small.format(amount) : dollars.format(amount);
}
