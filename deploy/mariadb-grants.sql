-- No sink needs them. PROCESS: an error about a lock wait names who holds the row. CONNECTION ADMIN: `tidegate xa --force` ends sessions of other
-- users. XA RECOVER needs no privilege here.
GRANT PROCESS, CONNECTION ADMIN ON *.* TO 'tidegate'@'%';
