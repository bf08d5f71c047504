/** What a reason of denials means, and what to do: its row of the run-book. */
import { Anchor } from '@mantine/core';
import { Link, useParams } from '@tanstack/react-router';
import RUN_BOOK from '../../../docs/operate/run-book.md?raw';
import { useSite } from '../api/session';
import { capital } from '../api/visible';
import { Facts, Page, Section } from '../parts/page';
import { ReasonChart } from '../parts/reason-chart';

interface Row {
  readonly meaning: string;
  readonly todo: string;
}

export default function Reason() {
  const { code = '' } = useParams({ strict: false });
  const isOne = code !== '';
  return (
    <Page
      {...(isOne ? { kind: 'Reason', title: code.replace('/', ' / ') } : { title: 'Denials' })}
      question="Why are these requests denied, and what to do?"
    >
      {isOne && <FromRunBook code={code} />}
      <Section title="Denials of the site, as targets (verifiers with one token) report them">
        <ReasonChart title="Last hour, by reason" period="hour" />
        {!isOne && <ExplainLink />}
      </Section>
    </Page>
  );
}

function FromRunBook({ code }: { readonly code: string }) {
  const row = rowOf(code);
  return (
    <Section title="From the run-book">
      <Facts
        rows={[
          ['Meaning', row?.meaning ?? 'The run-book of this version does not have it.'],
          ...(row === undefined ? [] : [['What to do', row.todo] as const]),
        ]}
      />
      <ExplainLink />
    </Section>
  );
}

function ExplainLink() {
  const { site_id } = useSite();
  return (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/explain`} size="sm">
      Explain a request, step by step
    </Anchor>
  );
}

const CELLS = /^\| (.+?) \| (.+?) \| (.+?) \|$/;

/** The row of the reason with the detail, or of the reason alone. Rows with `…` have the reason of the row before. */
function rowOf(code: string): Row | undefined {
  const [reason, detail] = code.split('/');
  let current = '';
  let ofReason: Row | undefined;
  for (const line of RUN_BOOK.split('\n')) {
    const [, name, meaning, todo] = CELLS.exec(line) ?? [];
    if (name === undefined || meaning === undefined || todo === undefined) continue;
    const [first = '', second] = plain(name).split(' / ');
    if (first !== '…') current = first;
    if (current !== reason) continue;
    const row = { meaning: capital(plain(meaning)), todo: capital(plain(todo)) };
    if (
      second !== undefined &&
      (second === detail || (detail === 'header' && second.startsWith('header.')))
    ) {
      return row;
    }
    // The names of attributes are never reported.
    if (second === undefined || second === 'NAME') ofReason ??= row;
  }
  return ofReason;
}

/** Without the marks of Markdown. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replaceAll('\\|', '|')
    .trim();
}
