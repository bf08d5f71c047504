/**
 * Merges the metrics of several processes into one exposition. A label on each series names its process. The values are
 * not summed: a sum would fall when a worker restarts, and revisions and ages have no sum.
 * Source: https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
 */

interface Family {
  readonly head: readonly string[];
  readonly samples: string[];
}

/** @param texts in the exposition format, which requires that all lines of a metric form one group */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text);
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

const COMMENT = /^# (?:HELP|TYPE) (\S+)/;

function addText(families: Map<string, Family>, text: string): void {
  let head: string[] = [];
  let family: Family | undefined;
  for (const line of text.split('\n')) {
    const name = COMMENT.exec(line)?.[1];
    if (name !== undefined) {
      if (line.startsWith('# HELP')) head = [];
      head.push(line);
      family = families.get(name) ?? { head, samples: [] };
      families.set(name, family);
    } else if (line !== '') {
      family?.samples.push(line);
    }
  }
}
