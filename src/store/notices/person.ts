/** A concerned person: a user of an organization. */
export interface NotifiedPerson {
  readonly organizationId: string;
  readonly userId: string;
}
