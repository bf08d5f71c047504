/** What is wrong at a site, with the page that mends it. */
import type { SiteOverview } from '../api/site-overview';

export interface Trouble {
  readonly about: 'Targets' | 'Sources' | 'Approvals' | 'Keys' | 'Published';
  readonly label: string;
  /** Path of the page below the site's. */
  readonly page: string;
  readonly since?: string | undefined;
  /** Whether it needs attention: every change waits for a moment, and targets are behind for one. */
  readonly isLasting: boolean;
}

const LASTING_MS = 60_000;

export function troublesOf(overview: SiteOverview): readonly Trouble[] {
  const { attached, behind, behind_since, silent } = overview.targets;
  const { pending_enrollments: pending, policies_not_renewed: late, unpublished_since } = overview;
  const troubles: Omit<Trouble, 'isLasting'>[] = [];
  if (silent > 0)
    troubles.push({ about: 'Targets', label: `${silent} of ${attached} do not poll`, page: 'targets' });
  else if (behind > 0)
    troubles.push({
      ...{ about: 'Targets', label: `${behind} of ${attached} behind`, page: 'targets' },
      since: behind_since,
    });
  for (const { display_name, source_id, since } of overview.publishing_sources)
    troubles.push({
      ...{ about: 'Sources', label: `${display_name}: publishing`, page: `sources/${source_id}` },
      since,
    });
  if (pending > 0) troubles.push({ about: 'Approvals', label: `${pending} waiting`, page: 'approvals' });
  if (late > 0) {
    const whose = `${late} ${late === 1 ? 'policy' : 'policies'}`;
    troubles.push({ about: 'Keys', label: `keys of ${whose} expire without renewal`, page: 'policies' });
  }
  if (unpublished_since !== undefined)
    troubles.push({
      ...{ about: 'Published', label: 'changes wait', page: 'targets' },
      since: unpublished_since,
    });
  return troubles.map((trouble) => ({
    ...trouble,
    isLasting: trouble.since === undefined || overview.readAtMs - Date.parse(trouble.since) > LASTING_MS,
  }));
}
