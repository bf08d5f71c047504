/** Explains a captured request. The request stays on this page and is stored neither in the URL nor in the browser. */
import { Alert, Code, Group, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSite } from '../api/session';
import { capital, visible } from '../api/visible';
import { AsCommand } from '../parts/command';
import { Facts, Page, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { ItemTable } from '../parts/table-frame';
import { Moment, State, UntrustedText } from '../parts/values';
import { ExplainForm } from './explain-form';

type Report = Schemas['ExplainReport'];

export default function Explain() {
  const { site_id } = useSite();
  const { mutate, data, error, isPending, reset } = useMutation({
    gcTime: 0,
    mutationFn: (body: Schemas['ExplanationRequest']) =>
      bodyOf(api.POST('/v1/sites/{site_id}/explanations', { params: { path: { site_id } }, body })),
  });
  return (
    <Page title="Explain a request" question="Why is this request allowed or denied?">
      <Section title="Request">
        {/* A result beside another request would be taken for that one's. */}
        <ExplainForm onSubmit={mutate} onChange={reset} isPending={isPending} />
        {error && <Problem error={error} />}
        <VisuallyHidden role="status">
          {data !== undefined && `Result: ${data.report.decision.outcome}`}
        </VisuallyHidden>
      </Section>
      {data !== undefined && (
        <div ref={intoView}>
          <Result {...data} />
        </div>
      )}
      <AsCommand words={{ saved: [], use: COMMAND }} />
    </Page>
  );
}

/** On a telephone it is below the form. */
const intoView = (result: HTMLElement | null) => result?.scrollIntoView();

const COMMAND =
  '# beside a verifier, also for requests that must not leave the machine\nproofgate explain --state-dir state --bundle-key pins/bundle-1.jwk.json --request capture.json';

const SOURCES: { readonly [S in Report['at_source']]: string } = {
  flag: 'as entered',
  event: 'of the audit event',
  check_request: 'of the CheckRequest',
  now: 'now: the capture names no moment',
};

const COMPARISONS: { readonly [comparison: string]: string } = {
  agrees: 'the same',
  beyond: 'based on a check that cannot be repeated here: replay, or a store that was unavailable',
  differs: 'different: the bundle, its freshness, a clock or the captured request was not the same',
};

function Result({ explained_by, report, lines }: Schemas['Explanation']) {
  const { decision, hint, recorded, when_made, needs } = report;
  return (
    <Stack gap="lg">
      <Section title="Result">
        <Group gap="xs">
          <State value={decision.outcome} />
          <Reason {...decision} />
          {decision.outcome === 'allowed' && <Text size="sm">if its jti has not been used</Text>}
        </Group>
        {hint !== null && (
          <Alert color="blue" title="What to do">
            <UntrustedText value={capital(hint)} />
          </Alert>
        )}
        {explained_by === 'verifier' && (
          <Text size="sm">
            As the verifier explained it when it denied the request. The capture holds no request to explain
            again.
          </Text>
        )}
        <Facts rows={factsOf(report)} />
        {recorded !== null && recorded.comparison !== null && (
          <Text size="sm">
            The recorded decision is {COMPARISONS[recorded.comparison]}
            {recorded.same_bundle === false && <>, by another bundle</>}.
          </Text>
        )}
        {when_made !== null && (
          <Text size="sm" component="div">
            When the proof was made, at <UntrustedText value={when_made.at} />: {when_made.decision.outcome}{' '}
            <Reason {...when_made.decision} />
          </Text>
        )}
        {needs.map((need) => (
          <Text key={need} size="sm">
            To see more, give <UntrustedText value={need} />
          </Text>
        ))}
      </Section>
      <Steps steps={report.steps} />
      <Lines transcript={report.transcript} />
      {report.rules.length > 0 && <Rules rules={report.rules} />}
      <Section title="As text">
        <Text size="sm" c="dimmed">
          Values that only the request has are redacted: their length is shown.
        </Text>
        <Code block tabIndex={0} className="grow">
          {lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat, and never move
            <div key={index}>{line === '' ? <br /> : <bdi>{visible(line)}</bdi>}</div>
          ))}
        </Code>
      </Section>
    </Stack>
  );
}

function Reason({ reason, detail }: Pick<Report['decision'], 'reason' | 'detail'>) {
  if (reason === null) return null;
  return (
    <Text size="sm" component="span" className="break">
      <UntrustedText value={reason} />
      {detail !== null && (
        <>
          {' '}
          (<UntrustedText value={detail} />)
        </>
      )}
    </Text>
  );
}

function factsOf({ at, at_source, bundle, decision, recorded }: Report) {
  const rows: (readonly [string, ReactNode])[] = [
    [
      'Moment explained',
      <>
        <Moment at={at} />{' '}
        <Text span size="sm">
          {SOURCES[at_source]}
        </Text>
      </>,
    ],
  ];
  if (decision.status !== null) rows.push(['Status of the answer', decision.status]);
  if (bundle !== null) {
    rows.push([
      'Bundle revision',
      `${bundle.revision}${bundle.signatures === 'valid' ? '' : ', not verified'}`,
    ]);
    rows.push(['Bundle known fresh at', <Moment key="fresh" at={bundle.fresh_as_of} />]);
    if (bundle.warnings.length > 0) {
      rows.push([
        'Warnings',
        bundle.warnings.map((warning) => <UntrustedText key={warning} value={warning} />),
      ]);
    }
  }
  if (recorded !== null) {
    rows.push(['Recorded', <Moment key="recorded" at={recorded.time} />]);
    if (recorded.decision_id !== null) {
      rows.push(['Decision ID', <UntrustedText key="id" value={recorded.decision_id} />]);
    }
  }
  return rows;
}

function Steps({ steps }: Pick<Report, 'steps'>) {
  return (
    <Section title="Steps">
      <ItemTable
        label="Steps"
        items={steps}
        idOf={({ step }) => String(step)}
        columns={[
          {
            title: 'Step',
            cell: ({ step, name }) => (
              <>
                {step}. <UntrustedText value={name} />
              </>
            ),
          },
          { title: 'Verdict', cell: ({ verdict }) => <State value={verdict} /> },
          {
            title: 'Reason',
            cell: ({ reason, detail }) => <Reason reason={reason ?? null} detail={detail ?? null} />,
          },
        ]}
      />
    </Section>
  );
}

const WHY: { readonly [why: string]: string } = {
  not_signed: 'not signed',
  body_unavailable: 'unknown: the body was not captured',
  header_missing: 'unknown: the header is missing',
  header_repeated: 'unknown: the header occurs more than once',
};

function Lines({ transcript }: Pick<Report, 'transcript'>) {
  const differing = transcript.filter(({ equal }) => !equal);
  return (
    <Section title="Lines that differ">
      {transcript.length === 0 ? (
        <Text size="sm">The transcript was not compared: that needs a route and readable credentials.</Text>
      ) : (
        <Text size="sm">
          {differing.length === 0 ? 'None' : differing.length} of {transcript.length} lines of the signed
          transcript differ from the request.
        </Text>
      )}
      {differing.length > 0 && (
        <ItemTable
          label="Lines that differ"
          items={differing}
          idOf={({ line }) => line}
          columns={[
            { title: 'Line', cell: ({ line }) => <UntrustedText value={line} /> },
            {
              title: 'Signed',
              cell: ({ signed }) => (signed === null ? WHY.not_signed : <UntrustedText value={signed} />),
            },
            {
              title: 'In the request',
              cell: ({ rebuilt, why }) =>
                rebuilt === null ? WHY[why ?? ''] : <UntrustedText value={rebuilt} />,
            },
            { title: 'Where', cell: ({ difference }) => difference !== null && <Where {...difference} /> },
          ]}
        />
      )}
    </Section>
  );
}

type Difference = NonNullable<Report['transcript'][number]['difference']>;

function Where({ character, place, only_in }: Difference) {
  return (
    <>
      from character {character} on
      {place !== null && (
        <>
          , in <UntrustedText value={place} />
        </>
      )}
      {only_in !== null && <>, only in {ONLY_IN[only_in]}</>}
    </>
  );
}

const ONLY_IN = { case: 'upper and lower case', escapes: 'escapes' } as const;

function Rules({ rules }: Pick<Report, 'rules'>) {
  return (
    <Section title="Caller rules of the route">
      <ItemTable
        label="Caller rules"
        items={rules}
        idOf={({ rule }) => String(rule)}
        columns={[
          { title: 'Rule', cell: ({ rule }) => rule },
          {
            title: 'Verdict',
            cell: ({ matches, fault }) => (
              <>
                <State value={matches ? 'matches' : 'no match'} />
                <Reason reason={fault} detail={null} />
              </>
            ),
          },
          {
            title: 'Subject',
            cell: ({ subject_exact, subject_prefix, canonical }) => (
              <>
                <UntrustedText value={subject_exact ?? `${subject_prefix ?? ''}…`} />
                {!canonical && <Text size="sm">no canonical SPIFFE ID: matches no caller</Text>}
              </>
            ),
          },
          { title: 'Issuer', cell: ({ issuer }) => <UntrustedText value={issuer} /> },
          { title: 'Trust domain', cell: ({ trust_domain }) => <UntrustedText value={trust_domain} /> },
          {
            title: 'Key binding',
            cell: ({ required_key_binding }) => <UntrustedText value={required_key_binding} />,
          },
        ]}
      />
    </Section>
  );
}
