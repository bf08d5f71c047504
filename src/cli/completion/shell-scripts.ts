/** Scripts that make a shell ask `proofgate` for candidates. Source: docs/operate/cli.md "Completion". */

/** Before the words of the unfinished line; not in the help. */
export const CANDIDATES_COMMAND = 'completion-candidates';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const BASH = `_proofgate() {
  local line=\${COMP_LINE:0:COMP_POINT} words broken
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  mapfile -t COMPREPLY < <(proofgate ${CANDIDATES_COMMAND} "\${words[@]:1}" 2>/dev/null)
  if [[ \${COMPREPLY[0]-} == :files ]]; then
    COMPREPLY=()
    compopt -o default
  fi
  # Readline replaces only what follows the last : or = of a word.
  broken=\${words[-1]}
  broken=\${broken%"\${broken##*[:=]}"}
  COMPREPLY=("\${COMPREPLY[@]#"$broken"}")
}
complete -F _proofgate proofgate
`;

const ZSH = `#compdef proofgate
_proofgate() {
  local -a found
  found=("\${(@f)$(proofgate ${CANDIDATES_COMMAND} "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${found[1]} == :files ]]; then
    _files
  else
    compadd -- \${found:#}
  fi
}
# Below fpath the file is the function; elsewhere it is read by source.
if [[ \${funcstack[1]} == _proofgate ]]; then _proofgate "$@"; else compdef _proofgate proofgate; fi
`;

const FISH = `function __proofgate_candidates
  set -l words (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token --cut-at-cursor)
  set -l found (proofgate ${CANDIDATES_COMMAND} $words[2..-1] 2>/dev/null)
  if test "$found[1]" = :files
    __fish_complete_path $words[-1]
  else
    printf '%s\\n' $found
  end
end
complete --command proofgate --no-files --arguments '(__proofgate_candidates)'
`;

export const SCRIPTS: { readonly [S in Shell]: string } = { bash: BASH, zsh: ZSH, fish: FISH };
