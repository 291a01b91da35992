package keys

import "encoding/binary"

// Tags of entries in a POSIX access list as Linux stores it in the extended
// attribute system.posix_acl_access (acl(5), linux/posix_acl_xattr.h).
const (
	aclVersion  = 2
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

// exposedBy reports whether a stored access list lets anybody besides the owner,
// root and the user self do anything. A list that cannot be understood counts as
// exposed.
func exposedBy(list []byte, self int) bool {
	const header_bytes, entry_bytes = 4, 8
	if len(list) < header_bytes || (len(list)-header_bytes)%entry_bytes != 0 {
		return true
	}
	if binary.LittleEndian.Uint32(list) != aclVersion {
		return true
	}
	for entry := list[header_bytes:]; len(entry) > 0; entry = entry[entry_bytes:] {
		tag := binary.LittleEndian.Uint16(entry)
		may := binary.LittleEndian.Uint16(entry[2:]) != 0
		id := binary.LittleEndian.Uint32(entry[4:])
		switch tag {
		case aclUserObj, aclMask: // the owner; an upper bound, which by itself grants nothing
		case aclUser:
			if may && id != 0 && int(id) != self {
				return true
			}
		case aclGroupObj, aclGroup, aclOther:
			if may {
				return true
			}
		default:
			return true
		}
	}
	return false
}
