/** An id's last eight digits, as people see it: ids of one minute begin with the same ones. */
export function shortId(id: string): string {
  return id.slice(-8);
}
