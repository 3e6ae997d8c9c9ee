# Read by a zsh behind an emulated path, because ZDOTDIR points here: restores ZDOTDIR, so that zsh reads the user's own
# files, and puts FULLPIPE_PATH before the prompt.
if [[ -n ${FULLPIPE_ZDOTDIR+x} ]]; then
    export ZDOTDIR=$FULLPIPE_ZDOTDIR
    unset FULLPIPE_ZDOTDIR
else
    unset ZDOTDIR
fi
[[ -r ${ZDOTDIR:-$HOME}/.zshenv ]] && source "${ZDOTDIR:-$HOME}/.zshenv"

if [[ -o interactive ]]; then
    __fullpipe_prompt() {
        # A % is special in prompts.
        local shown=${FULLPIPE_PATH//\%/%%}
        local outer=${shown% \[*}
        [[ $PS1 == "$shown "* ]] || PS1="$shown ${PS1#"$outer "}"
        # Last, also if a theme has added itself meanwhile.
        precmd_functions=(${precmd_functions:#__fullpipe_prompt} __fullpipe_prompt)
    }
    precmd_functions+=(__fullpipe_prompt)
fi
