/** Views of one page, of which one is shown; its name is in the URL. */
import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useUrlState } from '../api/url-state';

export interface View {
  readonly name: string;
  readonly title: string;
  readonly show: () => ReactNode;
}

/** The first view is the default. Each view has its own filters. */
export function Views({ views }: { readonly views: readonly View[] }) {
  const { values, set } = useUrlState();
  const shown = views.find(({ name }) => name === values.view) ?? views[0];
  const none = Object.fromEntries(Object.keys(values).map((name) => [name, undefined]));
  return (
    <Tabs value={shown?.name ?? null} onChange={(next) => set({ ...none, view: next ?? undefined })}>
      <Tabs.List mb="md">
        {views.map(({ name, title }) => (
          <Tabs.Tab key={name} value={name}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {views.map(({ name, show }) => (
        <Tabs.Panel key={name} value={name}>
          {name === shown?.name && show()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
