/** What an event changed: each member that is new, gone or different, marked by sign and by colour. */
import { Text } from '@mantine/core';
import { visible, visibleJson } from '../api/visible';

interface Member {
  /** Such as `allowed_sources[0].issuer`. */
  readonly path: string;
  /** As JSON. */
  readonly value: string;
}

/** Members that are neither object nor list, and empty ones of both. */
function membersOf(value: unknown, path = ''): readonly Member[] {
  const inner: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((item: unknown, at) => [`${path}[${at}]`, item] as const)
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([name, item]) => [path === '' ? name : `${path}.${name}`, item] as const)
      : [];
  if (inner.length > 0) return inner.flatMap(([name, item]) => membersOf(item, name));
  return path === '' ? [] : [{ path, value: visibleJson(value) }];
}

interface DifferenceProps {
  /** Undefined: the thing did not exist. */
  readonly before: object | undefined;
  readonly after: object | undefined;
}

export function Difference({ before, after }: DifferenceProps) {
  const was = membersOf(before);
  const is = membersOf(after);
  const beforeOf = new Map(was.map(({ path, value }) => [path, value]));
  const afterOf = new Map(is.map(({ path, value }) => [path, value]));
  const paths = [...new Set([...was, ...is].map(({ path }) => path))];
  const isSame = (path: string) => beforeOf.get(path) === afterOf.get(path);
  const same = paths.filter(isSame);
  return (
    <>
      {before === undefined && <Text size="sm">Before: nothing</Text>}
      {after === undefined && <Text size="sm">After: nothing</Text>}
      <div className="difference">
        {paths
          .filter((path) => !isSame(path))
          .map((path) => (
            <div key={path}>
              {beforeOf.has(path) && (
                <del>
                  − {visible(path)}: <bdi>{beforeOf.get(path)}</bdi>
                </del>
              )}
              {afterOf.has(path) && (
                <ins>
                  + {visible(path)}: <bdi>{afterOf.get(path)}</bdi>
                </ins>
              )}
            </div>
          ))}
      </div>
      {same.length > 0 && (
        <details>
          <summary>{same.length === 1 ? '1 member' : `${same.length} members`} unchanged</summary>
          <div className="difference">
            {same.map((path) => (
              <div key={path}>
                {visible(path)}: <bdi>{afterOf.get(path)}</bdi>
              </div>
            ))}
          </div>
        </details>
      )}
    </>
  );
}
