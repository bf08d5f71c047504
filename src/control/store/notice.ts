/** Notices that reach other parts and instances after a commit. */
export type Topic = 'site_changed' | 'site_published' | 'enrollment_decided';

export interface Notice {
  readonly topic: Topic;
  /** Site ID; for `enrollment_decided` the enrollment's ID. */
  readonly reference: string;
}
