/** Whom something concerns: a user of an organization. */
export interface Person {
  readonly organizationId: string;
  readonly userId: string;
}
