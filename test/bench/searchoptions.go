package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// searchOptions are the flags of the search scenario.
type searchOptions struct {
	command, server string
	members, pods   int
	listed          int
	events, watches int
	quiet           time.Duration
}

func defaultSearchOptions() searchOptions {
	return searchOptions{members: 20, pods: 100_000, listed: 10_000, events: 1000, watches: 500, quiet: 30 * time.Second}
}

func (o *searchOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.command, "search-command", o.command, "command of karmada-search that the search scenario starts")
	flags.StringVar(&o.server, "search-server", o.server, "URL at which that karmada-search serves its API")
	flags.IntVar(&o.members, "search-members", o.members, "number of members of the search scenario")
	flags.IntVar(&o.pods, "search-pods", o.pods, "number of Pods of all these members together")
	flags.IntVar(&o.listed, "search-listed-pods", o.listed, "number of these Pods that are listed: those of one namespace")
	flags.IntVar(&o.events, "search-events", o.events, "number of changes of Pods of the search scenario")
	flags.IntVar(&o.watches, "search-watches", o.watches, "number of open watches of the search scenario")
	flags.DurationVar(&o.quiet, "search-quiet", o.quiet, "duration of each measurement of the search scenario in which nothing happens")
}

func (o *searchOptions) validate() error {
	switch {
	case o.command == "" || o.server == "":
		return errors.New("the search scenario needs --search-command and --search-server")
	case o.members < 1 || o.listed < 1 || o.events < 1 || o.watches < 1 || o.quiet <= 0:
		return errors.New("--search-members, --search-listed-pods, --search-events, --search-watches and --search-quiet must be positive")
	case o.listed%o.members != 0 || o.pods < o.listed || o.pods%o.listed != 0:
		return errors.New("--search-pods must be a multiple of --search-listed-pods, and --search-listed-pods a multiple of --search-members")
	}
	return nil
}
