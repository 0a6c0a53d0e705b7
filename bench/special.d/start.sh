# Seconds from the last set-up call of a new link to its first row on B, and from the moment when a restarted B answers to
# the row that was written meanwhile; all settings are the defaults. Target (P22): both medians at most 2 s. Run with -n 10.

secret='a secret of the benchmark'

anew() {
	a -c 'DROP EXTENSION IF EXISTS onerepl CASCADE' -c 'TRUNCATE mark'
	b -c 'DROP EXTENSION IF EXISTS onerepl CASCADE' -c 'TRUNCATE mark'
	a -c 'CREATE EXTENSION onerepl'
	b -c 'CREATE EXTENSION onerepl'
	b -c "SELECT onerepl_add_remote('branch', '$secret', tables => '{*}')" >>"$dir/setup.log"
	a -c "SELECT onerepl_add_central('hq', '$http_url', '$secret')" -c "SELECT onerepl_add_table('mark')" >>"$dir/setup.log"
}

# until_arrived ID: waits for a mark on B; gives the seconds since it was called.
until_arrived() {
	b -c "DO \$\$ BEGIN
		FOR i IN 1 .. $deadline * 100 LOOP
			EXIT WHEN EXISTS (SELECT FROM mark WHERE id = $1);
			COMMIT;
			PERFORM pg_sleep(0.01);
		END LOOP;
	END \$\$" -c "SELECT extract(epoch FROM clock_timestamp() - '$(cat "$dir/since")')"
}
now() { a -c 'SELECT clock_timestamp()' >"$dir/since"; }

measure() {
	local r
	begin_peer onerepl
	for ((r = 1; r <= rounds; r++)); do
		anew
		now
		a -c "INSERT INTO mark VALUES ($r)"
		result start_first_row "$r" "$(until_arrived "$r")" s
		pg_ctl -D "$dir/b" -m fast -w stop >/dev/null
		a -c "INSERT INTO mark VALUES ($((r + 1000)))"
		sleep 15 # a back-off that grows would have grown
		pg_ctl -D "$dir/b" -l "$dir/b.log" -w -t 60 start >/dev/null 3>&-
		now
		result start_back_again "$r" "$(until_arrived $((r + 1000)))" s
	done
}
