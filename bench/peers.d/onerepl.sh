# onerepl: capture triggers on A, a sender on A and a receiver on B, both background workers of the servers.

http_port=${ONEREPL_PORT:-65403}
: "${http_url:=http://127.0.0.1:$http_port}"

peer_check() { [ -f "$(pg_config --sharedir)/extension/onerepl.control" ]; }

peer_conf() {
	echo "shared_preload_libraries = 'onerepl'"
	echo "onerepl.databases = 'bench'"
	[ "$1" = a ] || echo "onerepl.listen = '127.0.0.1:$http_port'"
}

peer_setup() {
	local t
	a -c 'CREATE EXTENSION onerepl' && b -c 'CREATE EXTENSION onerepl'
	b -c "SELECT onerepl_add_remote('branch', 'a secret of the benchmark', tables => '{public.*}')" >"$dir/setup.log"
	a -c "SELECT onerepl_add_central('hq', '$http_url', 'a secret of the benchmark')" >>"$dir/setup.log"
	for t in $tables; do a -c "SELECT onerepl_add_table('$t')" >>"$dir/setup.log"; done
}

link_start() { a -c "SELECT onerepl_resume('hq')" >>"$dir/setup.log"; }
link_stop() { a -c "SELECT onerepl_pause('hq')" >>"$dir/setup.log"; }
