package up

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

const (
	memberProgramsFlag = "member-programs"
	// dataDirWord stands for the data directory in auditLogDefault.
	dataDirWord     = "<data-dir>"
	auditLogDefault = dataDirWord + "/audit/audit.log"
)

// programsOff says why members run no Pods as processes of this machine, nil if they
// do. confinement is why the kernel cannot confine them.
func (o Options) programsOff(confinement error) error {
	if o.MemberPrograms != nil {
		if *o.MemberPrograms {
			return nil
		}
		return fmt.Errorf("--%s=false was given: start without it to run them", memberProgramsFlag)
	}
	if !loopback(o.BindAddress) {
		return fmt.Errorf("programs of Pods are processes of this machine, and --bind-address %s lets other machines in: give --%s to run them all the same", o.BindAddress, memberProgramsFlag)
	}
	if confinement != nil {
		return fmt.Errorf("%w, or give --%s to run them with all your rights", confinement, memberProgramsFlag)
	}
	return nil
}

// loopback reports whether only this machine reaches an address; empty stands for the
// default, which is one.
func loopback(address string) bool {
	ip := net.ParseIP(address)
	return address == "" || ip != nil && ip.IsLoopback()
}

// auditLogIn returns the file that --audit-log names.
func auditLogIn(dir dataDir, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	path, err := filepath.Abs(strings.Replace(given, dataDirWord, dir.path, 1))
	if err != nil {
		return "", fmt.Errorf("finding the file that --audit-log names: %w", err)
	}
	return path, nil
}
