/** A release's bill of materials: the program, what the console bundles, and every package that its lock file installs in production, on any system. */
import { consoleComponents, withConsole } from './console-packages.mjs';
import { documentOf, rootComponent } from './document.mjs';
import { describePackages, foldersReached, productionFolders } from './npm-packages.mjs';

/** @param built the directory that the built dist/ is in */
export function describeRelease({ lock, epochSeconds, manifest, built }) {
  const root = rootComponent(manifest);
  const packages = describePackages(lock, productionFolders(lock), root['bom-ref']);
  return documentOf(withConsole(packages, consoleComponents(lock, built)), { epochSeconds, root });
}

/** The same of the middleware: the packages that its dependencies lead to. */
export function describeMiddleware({ lock, epochSeconds, manifest }) {
  const root = rootComponent(manifest);
  const { dependencies } = manifest;
  const own = { ...lock, packages: { ...lock.packages, '': { dependencies } } };
  const packages = describePackages(own, foldersReached(own), root['bom-ref']);
  return documentOf(packages, { epochSeconds, root });
}
