/** The place of content that is not there yet. */
import { Skeleton } from '@mantine/core';

/** @param height of that place, in pixels */
export function Loading({ height }: { readonly height: number }) {
  return <Skeleton height={height} className="loading" role="progressbar" aria-label="Loading" />;
}
