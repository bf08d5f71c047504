/** What other parts, and other instances, hear of after a commit. */
export type Topic = 'site_changed' | 'site_published' | 'enrollment_decided';

export interface Notice {
  readonly topic: Topic;
  /** Site ID; of `enrollment_decided` the enrollment's. */
  readonly reference: string;
}
