/** A page whose content is not there yet, or cannot be read: its title is shown at once. */
import { Loading } from './loading';
import { Page } from './page';
import { Problem } from './problem';

interface UnreadProps {
  /** The ID of a page about one thing, whose name is not known yet. */
  readonly title: string;
  readonly kind?: string;
  readonly error?: unknown;
}

export function Unread({ error, ...head }: UnreadProps) {
  return <Page {...head}>{error ? <Problem error={error} /> : <Loading height={320} />}</Page>;
}
