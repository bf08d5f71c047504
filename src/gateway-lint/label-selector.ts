/** Kubernetes' label selectors. Source: Kubernetes API, meta/v1 LabelSelector. */
import type { View } from './view.ts';

/** @param selector with `matchLabels` and `matchExpressions`, which must all hold @param object with `metadata.labels` */
export function isSelected(object: View, selector: View): boolean {
  const labels = object.at('metadata', 'labels');
  const labelOf = (name: string) => labels?.named(name)?.text;
  const wanted = selector.get('match_labels')?.members() ?? [];
  return (
    wanted.every(({ name, view }) => labelOf(name) === view.text) &&
    selector.list('match_expressions').every((expression) => holds(expression, labelOf))
  );
}

function holds(expression: View, labelOf: (name: string) => string | undefined): boolean {
  const label = labelOf(expression.get('key')?.text ?? '');
  const isListed = expression.list('values').some(({ text }) => text === label);
  switch (expression.get('operator')?.text) {
    case 'In':
      return isListed;
    case 'NotIn':
      return !isListed;
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    default:
      return false;
  }
}
