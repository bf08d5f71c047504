/** Binds an enrollment policy to a revision of another source, such as a source of the cluster that replaces an old one. */
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSources } from '../api/site-lists';
import { visible } from '../api/visible';
import { Action } from '../parts/action';
import { Fields } from '../parts/fields';
import { activeRevisions } from './policy-terms';

interface RebindProps {
  readonly policy: Schemas['EnrollmentPolicy'];
  readonly etag: string;
}

export function Rebind({ policy, etag }: RebindProps) {
  const { policy_id, site_id, source_id, source_revision, verified_subject, client_id } = policy;
  const [values, setValues] = useState<{ readonly [name: string]: string }>({});
  const revisions = activeRevisions(useSources(site_id) ?? [], ['activating', 'publishing', 'active']).filter(
    ({ source, revision }) => source.source_id !== source_id || revision.revision !== source_revision,
  );
  const chosen = revisions.find(({ value }) => value === values.revision) ?? revisions[0];
  const issuer = values.issuer ?? '';
  return (
    <Action
      label="Rebind"
      isDisabled={chosen === undefined}
      onOpen={() => setValues({})}
      command={[
        'rebind',
        policy_id,
        ...['--source', chosen?.source.source_id ?? ''],
        ...['--revision', String(chosen?.revision.revision ?? '')],
        ...['--expect-issuer', issuer],
      ]}
      confirm={{
        asksReason: true,
        consequence: `Workloads with the subject ${visible(verified_subject)} of the other cluster can enroll keys of client ${visible(client_id)}; those of the present one no longer can. Deployed commands go on working, and issued keys stay valid. Enrollments that wait are denied.`,
        fields: (
          <Fields
            fields={[
              {
                name: 'revision',
                label: 'Source and revision',
                options: revisions.map(({ value, label }) => ({ value, label })),
              },
              {
                name: 'issuer',
                label: 'Issuer of the intended cluster, exactly',
                description: 'Type it from what you know of the cluster. It must be that of the revision.',
              },
            ]}
            values={values}
            onChange={setValues}
          />
        ),
      }}
      run={async (query) => {
        if (chosen === undefined) return;
        await bodyOf(
          api.POST('/v1/enrollment-policies/{policy_id}/rebind', {
            params: { path: { policy_id }, query, header: { 'if-match': etag } },
            body: {
              source_id: chosen.source.source_id,
              source_revision: chosen.revision.revision,
              expected_issuer: issuer,
            },
          }),
        );
      }}
    />
  );
}
