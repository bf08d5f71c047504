/** The caller rules of a route: a caller must match one of them. */
import { Button, Fieldset, Group, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { ApiError, api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { useSite } from '../api/session';
import type { Because } from '../parts/action';
import type { Command } from '../parts/command';
import { EditForm } from '../parts/edit';
import { UntrustedText } from '../parts/values';

export type SourceRule = Schemas['RouteSources']['allowed_sources'][number];

const RULES_URL = '/v1/sites/{site_id}/routes/{route_id}/sources';

interface RuleDraft {
  readonly issuer: string;
  readonly trust_domain: string;
  readonly match: 'prefix' | 'exact';
  readonly subject: string;
  readonly required_key_binding: SourceRule['required_key_binding'];
}

function ruleDraftOf({
  subject_exact,
  subject_prefix,
  issuer,
  trust_domain,
  required_key_binding,
}: SourceRule): RuleDraft {
  return {
    issuer,
    trust_domain,
    required_key_binding,
    match: subject_exact === undefined ? 'prefix' : 'exact',
    subject: subject_exact ?? subject_prefix ?? '',
  };
}

export function ruleOf({ match, subject, ...members }: RuleDraft): SourceRule {
  return { ...members, ...(match === 'exact' ? { subject_exact: subject } : { subject_prefix: subject }) };
}

/** The rule that allows the site's own clients. */
export function ownRule({ issuer_url, trust_domain }: Schemas['Site']): RuleDraft {
  return {
    issuer: issuer_url,
    trust_domain,
    match: 'prefix',
    subject: 'client:',
    required_key_binding: 'software',
  };
}

export interface RulesDraft {
  readonly rules: readonly RuleDraft[];
}

interface RulesFieldsProps {
  readonly draft: RulesDraft;
  readonly change: (changes: RulesDraft) => void;
}

export function RulesFields({ draft: { rules }, change }: RulesFieldsProps) {
  const site = useSite();
  const replace = (index: number, changes: Partial<RuleDraft>) =>
    change({ rules: rules.map((each, at) => (at === index ? { ...each, ...changes } : each)) });
  return (
    <Stack>
      {rules.map((rule, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place; its values change as one types
        <Fieldset key={index} legend={`Rule ${index + 1}`}>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="Issuer"
              value={rule.issuer}
              onChange={({ currentTarget }) => replace(index, { issuer: currentTarget.value })}
              required
            />
            <TextInput
              label="Trust domain"
              value={rule.trust_domain}
              onChange={({ currentTarget }) => replace(index, { trust_domain: currentTarget.value })}
              required
            />
            <Select
              label="Subjects"
              data={[
                { value: 'prefix', label: 'that begin with' },
                { value: 'exact', label: 'exactly' },
              ]}
              value={rule.match}
              allowDeselect={false}
              onChange={(next) => replace(index, { match: next === 'exact' ? 'exact' : 'prefix' })}
            />
            <TextInput
              label="Subject"
              value={rule.subject}
              onChange={({ currentTarget }) => replace(index, { subject: currentTarget.value })}
              required
            />
            <Select
              label="Key binding"
              description="The weakest class that is enough."
              data={['software', 'attested_workload'] satisfies SourceRule['required_key_binding'][]}
              value={rule.required_key_binding}
              allowDeselect={false}
              onChange={(next) =>
                replace(index, {
                  required_key_binding: next === 'attested_workload' ? 'attested_workload' : 'software',
                })
              }
            />
          </SimpleGrid>
          <Group justify="flex-end" mt="sm">
            <Button
              variant="subtle"
              size="compact-sm"
              color="red"
              onClick={() => change({ rules: rules.filter((_, at) => at !== index) })}
            >
              Remove rule {index + 1}
            </Button>
          </Group>
        </Fieldset>
      ))}
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => change({ rules: [...rules, ownRule(site)] })}
      >
        Add rule
      </Button>
    </Stack>
  );
}

/** The route as in the site file, which requires at least one rule for each route. */
export function declaredRoute(
  route: object & { readonly route_id: string; readonly allowed_sources: readonly SourceRule[] },
): Command {
  return route.allowed_sources.length === 0
    ? { none: 'A site file declares no route without a caller rule.' }
    : { siteFile: { routes: [route] } };
}

/** The rules of a route; empty until the first rules are set. */
export async function readRules(path: { readonly site_id: string; readonly route_id: string }) {
  try {
    const { body, etag } = await versionedBodyOf(api.GET(RULES_URL, { params: { path } }));
    return { rules: body.allowed_sources, etag };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return { rules: [], etag: undefined };
  }
}

export function putRules(
  path: { readonly site_id: string; readonly route_id: string },
  allowed_sources: readonly SourceRule[],
  etag: string | undefined,
  query: Because,
) {
  const header = etag === undefined ? {} : { 'if-match': etag };
  return bodyOf(
    api.PUT(RULES_URL, { params: { path, query, header }, body: { allowed_sources: [...allowed_sources] } }),
  );
}

const isSame = (rule: RuleDraft) => (other: RuleDraft) =>
  JSON.stringify(ruleOf(other)) === JSON.stringify(ruleOf(rule));

/** Describes the callers that a rule admits. */
function admitted(rule: RuleDraft) {
  const { issuer, trust_domain, match, subject, required_key_binding } = rule;
  return {
    key: JSON.stringify(rule),
    shown: (
      <>
        callers whose subject {match === 'exact' ? 'is' : 'begins with'} <UntrustedText value={subject} />,
        with passports of <UntrustedText value={issuer} /> for trust domain{' '}
        <UntrustedText value={trust_domain} /> and{' '}
        {required_key_binding === 'software' ? 'any key' : 'the key of an attested workload'}
      </>
    ),
  };
}

export function EditSourceRules({ site_id, route_id, definition }: Schemas['Route']) {
  const path = { site_id, route_id };
  return (
    <EditForm<RulesDraft>
      label="Caller rules"
      consequence={
        <>
          Who may call route <UntrustedText value={route_id} />: a caller must match one of the rules. Without
          a rule, no request is let through.
        </>
      }
      command={(_, { rules }) =>
        declaredRoute({ route_id, ...definition, allowed_sources: rules.map(ruleOf) })
      }
      load={async () => {
        const { rules, etag = '' } = await readRules(path);
        return { draft: { rules: rules.map(ruleDraftOf) }, etag };
      }}
      fields={(draft, change) => <RulesFields draft={draft} change={change} />}
      asksReason
      admits={(now, draft) => draft.rules.filter((rule) => !now.rules.some(isSame(rule))).map(admitted)}
      save={({ rules }, etag, _, query) =>
        rules.length === 0 && etag !== ''
          ? bodyOf(api.DELETE(RULES_URL, { params: { path, query, header: { 'if-match': etag } } }))
          : putRules(path, rules.map(ruleOf), etag || undefined, query)
      }
    />
  );
}
