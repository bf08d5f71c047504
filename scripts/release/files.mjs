/** What a release is made of, by its version. */
export const CHECKSUMS = 'SHA256SUMS';
export const SIGNATURE = 'SHA256SUMS.sig';

export function filesOf(version) {
  return {
    npm: `proofgate-${version}.tgz`,
    chart: `proofgate-chart-${version}.tgz`,
    sbom: `proofgate-${version}.cdx.json`,
  };
}
